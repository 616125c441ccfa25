// What one asks of the engine, and where a request stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headway::engine {

/// How the next token is chosen. A temperature of 0 takes the most likely one.
struct Sampling {
  double temperature = 0;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1;        ///< the fewest tokens whose probabilities add up to it
  std::uint64_t seed = 0;
};

struct Request {
  std::string id;
  std::vector<std::int32_t> prompt;  ///< at least one token
  std::int64_t max_new_tokens = 16;
  std::vector<std::int32_t> stop;  ///< ends behind the first of these
  Sampling sampling;
};

/// A request under way: its tokens, how many of them lie in the cache, and the blocks they lie in.
struct Sequence {
  Request request;
  std::vector<std::int32_t> tokens;  ///< prompt and what was generated
  std::int64_t cached = 0;
  std::vector<std::int32_t> blocks;
  std::int64_t arrival = 0;  ///< order of submission

  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t generated() const { return length() - static_cast<std::int64_t>(request.prompt.size()); }
};

}  // namespace headway::engine
