// See measures.h. Rows are summed in blocks of sixteen, blocks in their order.
#include "tools/heads/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "headway/attention_probabilities.h"
#include "ops/reference/reference_attention.h"
#include "tools/heads/capture.h"

namespace headway::tools {
namespace {

constexpr std::int64_t kRows = 16;
constexpr std::int64_t kKeys = 512;

/// Numbers of tokens: equal texts have equal numbers, and −1 is like nothing.
struct TokenNumbers {
  std::vector<std::int32_t> queries, keys;  // empty: not known
  std::int32_t separator = -1;
};

TokenNumbers number_tokens(const HeadTokens& tokens) {
  TokenNumbers numbers;
  std::map<std::string, std::int32_t> known;
  const auto number = [&](const std::string& token) {
    return known.emplace(token, static_cast<std::int32_t>(known.size())).first->second;
  };
  for (const std::string& token : tokens.queries) numbers.queries.push_back(number(token));
  for (const std::string& token : tokens.keys) numbers.keys.push_back(number(token));
  if (!tokens.separator.empty()) numbers.separator = number(tokens.separator);
  return numbers;
}

/// What is summed over rows.
struct Sums {
  double entropy = 0, entropy_share = 0, distance = 0;
  std::int64_t rows = 0, rows_of_two = 0;
  std::array<double, kRoles> score{}, uniform{};
  std::array<std::int64_t, kRoles> role_rows{};

  void operator+=(const Sums& other) {
    entropy += other.entropy;
    entropy_share += other.entropy_share;
    distance += other.distance;
    rows += other.rows;
    rows_of_two += other.rows_of_two;
    for (std::size_t r = 0; r < kRoles; ++r) {
      score[r] += other.score[r];
      uniform[r] += other.uniform[r];
      role_rows[r] += other.role_rows[r];
    }
  }
};

/// What is summed over the keys of a row: attention to a role's keys, and how many of them are visible.
struct RowSums {
  double entropy = 0, distance = 0;
  std::int64_t visible = 0;
  std::array<double, kRoles> share{};
  std::array<std::int64_t, kRoles> targets{};
};

class Measurer {
 public:
  Measurer(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch, const TokenNumbers& tokens)
      : spec_(spec), args_(args), batch_(batch), tokens_(tokens), positions_(positions_of(spec, args, batch)) {}

  Sums rows(std::int64_t head, std::int64_t begin, std::int64_t end) const {
    std::vector<float> probs(static_cast<std::size_t>(kRows * kKeys));
    std::array<RowSums, kRows> sums{};
    for (std::int64_t key = 0; key < spec_.key_len; key += kKeys) {
      const std::int64_t keys = std::min(kKeys, spec_.key_len - key);
      const TensorView tile = view_of(probs.data(), Dims{end - begin, keys});
      attention_probabilities(spec_, args_, {batch_, head, begin, end, key, key + keys}, tile);
      for (std::int64_t i = begin; i < end; ++i) {
        add_keys(i, key, keys, probs.data() + (i - begin) * keys, &sums[static_cast<std::size_t>(i - begin)]);
      }
    }
    Sums total;
    for (std::int64_t i = begin; i < end; ++i) {
      if (!is_padding(head, i)) add_row(i, sums[static_cast<std::size_t>(i - begin)], &total);
    }
    return total;
  }

 private:
  static std::int32_t token(const std::vector<std::int32_t>& of, std::int64_t at) {
    return at >= 0 && at < static_cast<std::int64_t>(of.size()) ? of[static_cast<std::size_t>(at)] : -1;
  }

  /// A key counts as visible when it has weight: what exp rounds to 0 is as good as hidden.
  void add_keys(std::int64_t i, std::int64_t first, std::int64_t keys, const float* probs, RowSums* row) const {
    const std::int64_t position = i + positions_.offset;
    const std::int32_t own = token(tokens_.queries, i);
    for (std::int64_t k = 0; k < keys; ++k) {
      const auto p = static_cast<double>(probs[k]);
      if (!(p > 0)) continue;
      const std::int64_t j = first + k;
      ++row->visible;
      row->entropy -= p * std::log(p);
      if (j >= positions_.keys) continue;  // appended to be seen by all: at no position, without a token
      row->distance += p * static_cast<double>(std::abs(position - j));
      const auto add = [&](Role role) {
        row->share[role] += p;
        ++row->targets[role];
      };
      if (j == 0) add(kFirst);
      if (j == position) add(kSame);
      if (j == position - 1) add(kPrevious);
      if (j == position + 1) add(kNext);
      if (tokens_.separator >= 0 && token(tokens_.keys, j) == tokens_.separator) add(kSeparator);
      if (own >= 0 && j < position && token(tokens_.keys, j - 1) == own) add(kInduction);
    }
  }

  /// Whether a mask hides the key at the query's own position: what such a query attends to is of no use to anybody.
  bool is_padding(std::int64_t head, std::int64_t i) const {
    constexpr float kHides = -1e30f;  // masks of the lowest float hide too
    const std::int64_t own = i + positions_.offset;
    if (!positions_.defined || own < 0 || own >= positions_.keys) return false;
    return reference_bias(spec_, args_, {batch_, head, i, own}) <= kHides;
  }

  /// Whether the role is one that this row's queries can have: positions, and not the target itself.
  bool defined(Role role, std::int64_t i) const {
    if (role == kSeparator) return token(tokens_.queries, i) != tokens_.separator || tokens_.queries.empty();
    if (!positions_.defined) return role == kFirst;
    return role != kFirst || i + positions_.offset > 0;
  }

  void add_row(std::int64_t i, const RowSums& row, Sums* sums) const {
    if (row.visible == 0) return;
    ++sums->rows;
    sums->entropy += row.entropy;
    sums->distance += row.distance;
    if (row.visible > 1) {
      ++sums->rows_of_two;
      sums->entropy_share += row.entropy / std::log(static_cast<double>(row.visible));
    }
    for (const Role role : {kFirst, kSame, kPrevious, kNext, kSeparator, kInduction}) {
      if (row.targets[role] == 0 || row.visible < 2 || !defined(role, i)) continue;
      ++sums->role_rows[role];
      sums->score[role] += row.share[role];
      sums->uniform[role] += static_cast<double>(row.targets[role]) / static_cast<double>(row.visible);
    }
  }

  const AttentionSpec& spec_;
  const AttentionArgs& args_;
  std::int64_t batch_;
  const TokenNumbers& tokens_;
  Positions positions_;
};

double mean(double sum, std::int64_t rows) {
  return rows > 0 ? sum / static_cast<double>(rows) : std::numeric_limits<double>::quiet_NaN();
}

HeadMeasures measures_of(const Sums& sums, bool has_positions) {
  HeadMeasures head;
  head.rows = sums.rows;
  head.entropy = mean(sums.entropy, sums.rows);
  head.entropy_share = mean(sums.entropy_share, sums.rows_of_two);
  head.distance = mean(sums.distance, has_positions ? sums.rows : 0);
  for (std::size_t r = 0; r < kRoles; ++r) {
    head.roles[r] = {mean(sums.score[r], sums.role_rows[r]), mean(sums.uniform[r], sums.role_rows[r]),
                     sums.role_rows[r]};
  }
  return head;
}

}  // namespace

double RoleScore::threshold() const { return std::max(kBadgeScore, kBadgeOverUniform * uniform); }
bool RoleScore::earns_badge() const { return rows >= kBadgeRows && score >= threshold(); }

std::vector<HeadMeasures> measure_heads(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch,
                                        const HeadTokens& tokens, const Threads& threads) {
  const TokenNumbers numbers = number_tokens(tokens);
  const Measurer measurer(spec, args, batch, numbers);
  const std::int64_t blocks = (spec.query_len + kRows - 1) / kRows;
  std::vector<Sums> sums(static_cast<std::size_t>(spec.num_heads * blocks));
  threads.parallel_for(spec.num_heads * blocks, [&](std::int64_t task, int) {
    const std::int64_t begin = task % blocks * kRows;
    sums[static_cast<std::size_t>(task)] = measurer.rows(task / blocks, begin, std::min(begin + kRows, spec.query_len));
  });
  std::vector<HeadMeasures> heads;
  const bool has_positions = positions_of(spec, args, batch).defined;
  for (std::int64_t h = 0; h < spec.num_heads; ++h) {
    Sums total;
    for (std::int64_t b = 0; b < blocks; ++b) total += sums[static_cast<std::size_t>(h * blocks + b)];
    heads.push_back(measures_of(total, has_positions));
  }
  return heads;
}

}  // namespace headway::tools
