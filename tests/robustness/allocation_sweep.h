// Does something over and over, each time failing another of its allocations, and says what went wrong. Knows nothing
// of what is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace headway::testing {

/// Something to be done with objects of its own.
class Scenario {
 public:
  virtual ~Scenario() = default;
  /// Returns a hash of the results. Done again after it failed, it must give what it would have given.
  virtual std::uint64_t act() = 0;
};

struct SweepResult {
  long points = 0;     ///< allocations that act() asks for
  long failed = 0;     ///< of those, how many were made to fail, each alone and with all after it
  long refused = 0;    ///< how often the answer was an Error kOutOfMemory
  long absorbed = 0;   ///< how often act() gave its result all the same
  std::string faults;  ///< a line each
};

/// Fails every allocation of act() on fresh objects; of more than a thousand, the first thousand and a seeded sample of
/// the rest (all with HEADWAY_EVERY_ALLOCATION in the environment). Each time the answer must be an Error kOutOfMemory
/// or the right result, act() must then succeed on the same objects, and nothing may stay behind when they are gone.
SweepResult sweep_allocations(const std::function<std::unique_ptr<Scenario>()>& make);

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0xcbf29ce484222325u);

}  // namespace headway::testing
