// The implementation `few_queries`: so few query rows to a key/value head (decoding) that memory is the limit. All rows
// of a head read each key and value once; long sequences are cut into parts, by shape alone, that are added up in their
// order. Decides the parts; what happens in one is few_queries_part.cc's, the arithmetic ops/simd's.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/few_queries/part.h"
#include "ops/attention/implementation.h"
#include "ops/base/numeric.h"
#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

constexpr std::int64_t kMaxRows = 8;       // beyond it the register tile of `tiled` wastes less than this rereads
constexpr std::int64_t kPartKeys = 512;    // a part is not worth less
constexpr std::int64_t kWantedTasks = 16;  // heads are cut into parts until there are so many tasks

constinit const Zone kZoneFewQueries{"few queries", "attention"};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class FewQueriesAttention final : public AttentionImplementation {
 public:
  explicit FewQueriesAttention(const AttentionSpec& spec)
      : spec_(spec), shape_(spec), kernels_(few_queries_kernels()), row_kernels_(softmax_kernels()) {
    const std::int64_t units = std::max<std::int64_t>(spec.batch * *spec.num_kv_heads, 1);
    parts_ =
        std::clamp<std::int64_t>(ceil_div(kWantedTasks, units), 1, std::max<std::int64_t>(spec.key_len / kPartKeys, 1));
    part_keys_ = ceil_div(spec.key_len, parts_);
  }

  std::string explain() const override {
    return std::string(kernels_.target) + ", " + std::to_string(shape_.rows) + " rows a key head, " +
           std::to_string(parts_) + " parts of " + std::to_string(part_keys_) + " keys, workspace " +
           std::to_string(workspace_bytes(1)) + " bytes";
  }
  std::size_t workspace_bytes(int workers) const override {
    const std::int64_t states = spec_.batch * *spec_.num_kv_heads * parts_ * shape_.state_floats;
    return static_cast<std::size_t>(states + workers * shape_.scratch_floats) * sizeof(float);
  }

  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override {
    const BiasSource bias(spec_, args);
    const std::int64_t units = spec_.batch * *spec_.num_kv_heads;
    auto* const states = reinterpret_cast<float*>(workspace);
    float* const scratch = states + units * parts_ * shape_.state_floats;
    const auto unit_of = [&](std::int64_t unit) {
      return FewQueriesPart{
          spec_, shape_, kernels_, row_kernels_, args, bias, unit / *spec_.num_kv_heads, unit % *spec_.num_kv_heads};
    };
    threads.parallel_for(units * parts_, [&](std::int64_t task, int worker) {
      ProfileScope scope(profiler, worker, kZoneFewQueries);
      const FewQueriesPart unit = unit_of(task / parts_);
      const PartState state(shape_, states + task * shape_.state_floats);
      const std::int64_t begin = task % parts_ * part_keys_;
      const KeyRange keys{begin, std::min(begin + part_keys_, spec_.key_len)};
      const PartCount count = unit.run(keys, state, scratch + worker * shape_.scratch_floats);
      if (parts_ == 1) finish(unit, &state, 1);
      if (profiler) scope.add(work(count));
    });
    if (parts_ == 1) return;
    threads.parallel_for(units, [&](std::int64_t unit, int worker) {
      ProfileScope scope(profiler, worker, kZoneFewQueries);
      PartState all[kWantedTasks];
      for (std::int64_t p = 0; p < parts_; ++p) {
        all[p] = PartState(shape_, states + (unit * parts_ + p) * shape_.state_floats);
      }
      finish(unit_of(unit), all, parts_);
    });
  }

 private:
  Work work(const PartCount& count) const {
    const std::int64_t width = spec_.head_dim + *spec_.value_head_dim;
    return {.flops_nominal = 2 * count.pairs * width,
            .flops_executed = 2 * count.keys * shape_.rows * width,
            .exps = count.keys * shape_.rows,
            .bytes = static_cast<std::int64_t>(size_bytes(spec_.type)) * count.keys * width};
  }

  void finish(const FewQueriesPart& unit, const PartState* parts, std::int64_t count) const {
    if (spec_.type == DataType::kBF16) {
      finish_as<BFloat16>(unit, parts, count);
    } else {
      finish_as<float>(unit, parts, count);
    }
  }

  /// Adds up the parts in their order and writes the rows.
  template <class Real>
  void finish_as(const FewQueriesPart& unit, const PartState* parts, std::int64_t count) const {
    const Dims& s = unit.args.out.strides;
    Real* const base = unit.args.out.as<Real>() + unit.batch * s[0];
    const std::int64_t columns = *spec_.value_head_dim;
    const float empty = spec_.empty_row == EmptyRow::kZero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t r = 0; r < shape_.rows; ++r) {
      float maximum = std::numeric_limits<float>::lowest();
      bool live = false;
      for (std::int64_t p = 0; p < count; ++p) {
        maximum = std::max(maximum, parts[p].maximum[r]);
        live = live || parts[p].live[r] != 0;
      }
      float share[kWantedTasks];
      float sum = 0;
      for (std::int64_t p = 0; p < count; ++p) {
        share[p] = std::exp(parts[p].maximum[r] - maximum);
        sum += share[p] * parts[p].sum[r];
      }
      Real* const out = base + unit.head_of(r) * s[1] + unit.query_of(r) * s[2];
      bool finite = true;
      for (std::int64_t c = 0; c < columns; ++c) {
        float total = 0;
        for (std::int64_t p = 0; p < count; ++p) total += share[p] * parts[p].context[r * columns + c];
        out[c * s[3]] = convert<Real>(live ? total / sum : empty);
        finite = finite && std::isfinite(total);
      }
      // A hidden key's weight is exactly 0, but 0·NaN is NaN: the reference never reads a hidden value.
      if (live && !finite && std::isfinite(sum)) {
        const std::int64_t query = unit.query_of(r);
        reference_attention_rows(spec_, unit.args, {unit.batch, unit.head_of(r), query, query + 1});
      }
    }
  }

  AttentionSpec spec_;
  FewQueriesShape shape_;
  FewQueriesKernels kernels_;
  SoftmaxKernels row_kernels_;
  std::int64_t parts_ = 1;
  std::int64_t part_keys_ = 0;
};

}  // namespace

std::string few_queries_why_impossible(const AttentionSpec& spec) {
  if (spec.scores_output != ScoresOutput::kNone) return "it writes no scores";
  return {};
}

std::string few_queries_why_not_preferred(const AttentionSpec& spec) {
  const std::int64_t rows = *spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads * spec.query_len : 0;
  if (rows <= kMaxRows) return {};
  return std::to_string(rows) + " query rows a key head, of which at most " + std::to_string(kMaxRows) + " are few";
}

std::unique_ptr<const AttentionImplementation> make_few_queries(const AttentionSpec& spec) {
  return std::make_unique<FewQueriesAttention>(spec);
}

}  // namespace headway
