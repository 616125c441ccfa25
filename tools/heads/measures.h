// A head in numbers: entropy, distance, and the score of every role, from tiles of its probabilities. Memory: a tile a
// worker and a few numbers for every sixteen rows, whatever the length. Knows no files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headway/attention.h"
#include "headway/threads.h"
#include "tools/heads/roles.h"

namespace headway::tools {

/// Tokens of both axes; either may be empty, which leaves undefined what needs them.
struct HeadTokens {
  std::vector<std::string> queries;  ///< [Sq]
  std::vector<std::string> keys;     ///< [keys with positions]
  std::string separator;             ///< empty: none is looked for
};

/// The score of a role: a mean over `rows`, NaN when there are none.
struct RoleScore {
  double score = 0;
  double uniform = 0;  ///< what the score would be if every row spread evenly over the keys that it sees
  std::int64_t rows = 0;

  double threshold() const;
  bool earns_badge() const;
};

struct HeadMeasures {
  double entropy = 0;        ///< nats, mean over the rows that see a key
  double entropy_share = 0;  ///< of ln(visible keys), mean over the rows that see two keys or more
  double distance = 0;       ///< Σ p·|position − key|, mean over rows; NaN where queries have no position
  std::int64_t rows = 0;     ///< that see a key
  std::array<RoleScore, kRoles> roles;
};

/// Measures every head of one batch entry, over the rows that are no padding: in self-attention a query whose own key
/// is hidden does not count; `args` as attention_probabilities() takes them. Exact but for the rounding of the
/// probabilities; the same at any number of threads.
std::vector<HeadMeasures> measure_heads(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch,
                                        const HeadTokens& tokens, const Threads& threads);

}  // namespace headway::tools
