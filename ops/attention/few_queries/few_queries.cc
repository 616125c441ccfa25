// The implementation `few_queries`: so few query rows per key/value head (decoding) that memory is the limit. All rows
// of a head group read each key and value once; long sequences are cut into key splits, by shape alone, that are added
// up in their order. Decides the splits; what happens in one is key_split.cc's, the arithmetic ops/simd's.
#include <algorithm>
#include <cmath>

#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/epilogue/log_sum_exp.h"
#include "ops/attention/epilogue/recompute_rows.h"
#include "ops/attention/few_queries/key_split.h"
#include "ops/attention/few_queries/workspace.h"
#include "ops/attention/implementation.h"
#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"

namespace headway {
namespace {

constexpr std::int64_t kMaxRows = 8;         // beyond it the register tile of `tiled` wastes less than rereading costs
constexpr std::int64_t kMinSplitKeys = 512;  // a smaller split is not worth adding up
constexpr std::int64_t kEnoughTasks = 16;    // head groups are split until there are so many tasks

constinit const Zone kZoneFewQueries{"few queries", "attention"};

std::int64_t head_groups_of(const AttentionSpec& spec) { return spec.batch * *spec.num_kv_heads; }

std::int64_t splits_of(const AttentionSpec& spec) {
  const std::int64_t groups = std::max<std::int64_t>(head_groups_of(spec), 1);
  return std::clamp<std::int64_t>(ceil_div(kEnoughTasks, groups), 1,
                                  std::max<std::int64_t>(spec.key_len / kMinSplitKeys, 1));
}

class FewQueriesAttention final : public AttentionImplementation {
 public:
  explicit FewQueriesAttention(const AttentionSpec& spec)
      : spec_(spec),
        shape_(spec),
        kernels_(few_queries_kernels()),
        row_kernels_(softmax_kernels()),
        splits_(splits_of(spec)),
        split_keys_(ceil_div(spec.key_len, splits_)),
        workspace_(spec, shape_, head_groups_of(spec) * splits_) {}

  std::string explain() const override {
    return std::string(kernels_.target) + ", " + std::to_string(shape_.rows) + " rows per key head, " +
           std::to_string(splits_) + " splits of " + std::to_string(split_keys_) + " keys, workspace " +
           std::to_string(workspace_bytes(1)) + " bytes";
  }
  std::size_t workspace_bytes(int workers) const override { return workspace_.bytes(workers); }

  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler) const override {
    const BiasSource bias(spec_, args);
    const std::int64_t groups = head_groups_of(spec_);
    const auto task_of = [&](std::int64_t group) {
      return FewQueriesTask{
          spec_, shape_, kernels_, row_kernels_, args, bias, group / *spec_.num_kv_heads, group % *spec_.num_kv_heads};
    };
    threads.parallel_for(groups * splits_, [&](std::int64_t index, int worker) {
      ProfileScope scope(profiler, worker, kZoneFewQueries);
      const FewQueriesTask task = task_of(index / splits_);
      const SplitState state = workspace_.state(workspace, index);
      const std::int64_t begin = index % splits_ * split_keys_;
      const KeyRange keys{begin, std::min(begin + split_keys_, spec_.key_len)};
      const SplitCount count = run_key_split(task, keys, state, workspace_.scratch(workspace, worker));
      if (splits_ == 1) finish(task, &state, 1);
      if (profiler) scope.add(work(count));
    });
    if (splits_ == 1) return;
    threads.parallel_for(groups, [&](std::int64_t group, int worker) {
      ProfileScope scope(profiler, worker, kZoneFewQueries);
      SplitState states[kEnoughTasks];
      for (std::int64_t s = 0; s < splits_; ++s) states[s] = workspace_.state(workspace, group * splits_ + s);
      finish(task_of(group), states, splits_);
    });
  }

 private:
  Work work(const SplitCount& count) const {
    const std::int64_t width = spec_.head_dim + *spec_.value_head_dim;
    return {.flops_nominal = 2 * count.pairs * width,
            .flops_executed = 2 * count.keys * shape_.rows * width,
            .exps = count.keys * shape_.rows,
            .bytes = static_cast<std::int64_t>(size_bytes(spec_.type)) * count.keys * width};
  }

  void finish(const FewQueriesTask& task, const SplitState* splits, std::int64_t count) const {
    if (spec_.type == DataType::kBF16) {
      finish_as<BFloat16>(task, splits, count);
    } else {
      finish_as<float>(task, splits, count);
    }
  }

  /// Adds up the key splits in their order and writes the rows.
  template <class Real>
  void finish_as(const FewQueriesTask& task, const SplitState* splits, std::int64_t count) const {
    const Dims& strides = task.args.out.strides;
    Real* const base = task.args.out.as<Real>() + task.batch * strides[0];
    const std::int64_t columns = *spec_.value_head_dim;
    const float empty = empty_row_value(spec_);
    for (std::int64_t r = 0; r < shape_.rows; ++r) {
      float maximum = kLowestScore;
      bool live = false;
      for (std::int64_t s = 0; s < count; ++s) {
        maximum = std::max(maximum, splits[s].maximum[r]);
        live = live || splits[s].live[r] != 0;
      }
      float share[kEnoughTasks];
      float sum = 0;
      for (std::int64_t s = 0; s < count; ++s) {
        share[s] = std::exp(splits[s].maximum[r] - maximum);
        sum += share[s] * splits[s].sum[r];
      }
      Real* const out = base + task.head_of(r) * strides[1] + task.query_of(r) * strides[2];
      bool finite = true;
      for (std::int64_t c = 0; c < columns; ++c) {
        float total = 0;
        for (std::int64_t s = 0; s < count; ++s) total += share[s] * splits[s].context[r * columns + c];
        out[c * strides[3]] = convert<Real>(live ? total / sum : empty);
        finite = finite && std::isfinite(total);
      }
      if (live && must_recompute(sum, finite)) {
        recompute_nonfinite_row(spec_, task.args, {task.batch, task.head_of(r), task.query_of(r)});
      }
      splits[0].maximum[r] = maximum;
      splits[0].sum[r] = sum;
    }
    if (task.args.log_sum_exp) write_log_sum_exps(task, splits[0]);
  }

  /// A row that saw no key has a sum of 0, and so −inf.
  void write_log_sum_exps(const FewQueriesTask& task, const SplitState& total) const {
    row_kernels_.log_sum_exp(total.maximum, total.sum, total.sum, shape_.rows);
    for (std::int64_t r = 0; r < shape_.rows; r += spec_.query_len) {
      write_log_sum_exp(task.args.log_sum_exp, task.batch, task.head_of(r), 0, spec_.query_len, total.sum + r);
    }
  }

  AttentionSpec spec_;
  FewQueriesShape shape_;
  FewQueriesKernels kernels_;
  SoftmaxKernels row_kernels_;
  std::int64_t splits_;
  std::int64_t split_keys_;
  FewQueriesWorkspace workspace_;
};

}  // namespace

std::string few_queries_why_impossible(const AttentionSpec& spec) {
  if (spec.scores_output != ScoresOutput::kNone) return "it writes no scores";
  return {};
}

std::string few_queries_why_not_preferred(const AttentionSpec& spec) {
  const std::int64_t rows = *spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads * spec.query_len : 0;
  if (rows <= kMaxRows) return {};
  return std::to_string(rows) + " query rows per key head, expected at most " + std::to_string(kMaxRows);
}

std::unique_ptr<const AttentionImplementation> make_few_queries(const AttentionSpec& spec) {
  return std::make_unique<FewQueriesAttention>(spec);
}

}  // namespace headway
