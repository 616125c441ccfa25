// See allocation_sweep.h.
#include "tests/robustness/allocation_sweep.h"

#include <cstdlib>
#include <exception>
#include <optional>
#include <set>

#include "headway/error.h"
#include "tests/robustness/failing_allocator.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr long kFirst = 1000;
constexpr int kSampled = 150;
constexpr std::size_t kMaxFaultBytes = 2000;

std::set<long> points_to_fail(long points) {
  std::set<long> chosen;
  const bool every = std::getenv("HEADWAY_EVERY_ALLOCATION") != nullptr;
  for (long n = 1; n <= points && (every || n <= kFirst); ++n) chosen.insert(n);
  Random random(23);
  for (int i = 0; i < kSampled && points > kFirst; ++i) chosen.insert(random.between(kFirst + 1, points));
  return chosen;
}

class Sweep {
 public:
  explicit Sweep(const std::function<std::unique_ptr<Scenario>()>& make) : make_(make) {}

  SweepResult run() {
    // Caches of the process fill before anything is counted: twice, since some fill at the second look.
    for (int i = 0; i < 2; ++i) expected_ = make_()->act();
    {
      const std::unique_ptr<Scenario> scenario = make_();
      const FailAllocations none(0, FailAllocations::kOne);
      scenario->act();
      result_.points = none.asked();
    }
    for (const long n : points_to_fail(result_.points)) {
      fail(n, FailAllocations::kOne);
      fail(n, FailAllocations::kOneAndAllAfter);
      ++result_.failed;
    }
    return std::move(result_);
  }

 private:
  void fault(long n, FailAllocations::Mode mode, const std::string& text) {
    if (result_.faults.size() > kMaxFaultBytes) return;
    result_.faults += "allocation " + std::to_string(n) +
                      (mode == FailAllocations::kOne ? " alone" : " and all after") + ": " + text + "\n";
  }

  /// What act() does when its nth allocation fails: empty when it gave its result.
  std::string answer(Scenario* scenario, long n, FailAllocations::Mode mode) {
    std::exception_ptr thrown;
    std::uint64_t hash = 0;
    {
      const FailAllocations failing(n, mode);
      try {
        hash = scenario->act();
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (!thrown) return hash == expected_ ? "" : "another result";
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) return "kOutOfMemory";
      return std::string("Error with another code: ") + error.what();
    } catch (const std::exception& error) {
      return std::string("not an Error: ") + error.what();
    } catch (...) {
      return "not a std::exception";
    }
  }

  void fail(long n, FailAllocations::Mode mode) {
    std::string got;
    got.reserve(kMaxFaultBytes);  // nothing of the sweep's own may count as left behind
    bool same_again = false;
    const long before = live_allocations();
    {
      const std::unique_ptr<Scenario> scenario = make_();
      got.assign(answer(scenario.get(), n, mode), 0, kMaxFaultBytes);
      same_again = scenario->act() == expected_;
    }
    const long left = live_allocations() - before;
    if (got.empty()) {
      ++result_.absorbed;
    } else if (got == "kOutOfMemory") {
      ++result_.refused;
    } else {
      fault(n, mode, got);
    }
    if (!same_again) fault(n, mode, "another result when it is done again");
    if (left != 0) fault(n, mode, std::to_string(left) + " allocations stay behind");
  }

  const std::function<std::unique_ptr<Scenario>()>& make_;
  std::uint64_t expected_ = 0;
  SweepResult result_;
};

}  // namespace

SweepResult sweep_allocations(const std::function<std::unique_ptr<Scenario>()>& make) { return Sweep(make).run(); }

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (const std::byte byte : bytes) seed = (seed ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  return seed;
}

}  // namespace headway::testing
