// The double reference as an implementation: runs every spec, fast at none. Decides only how its rows are shared out.
#include <algorithm>

#include "ops/attention/implementation.h"
#include "ops/attention/visibility.h"
#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

/// Scores, softmax and context are one loop here and cannot be timed apart.
constinit const Zone kZoneReference{"reference", "attention"};

constexpr std::int64_t kRowsPerTask = 16;

class ReferenceImplementation final : public AttentionImplementation {
 public:
  explicit ReferenceImplementation(const AttentionSpec& spec)
      : spec_(spec), blocks_((spec.query_len + kRowsPerTask - 1) / kRowsPerTask) {}

  std::string explain() const override {
    return "double precision, " + std::to_string(kRowsPerTask) + " rows a task, workspace 0 bytes";
  }
  std::size_t workspace_bytes(int) const override { return 0; }

  void run(const AttentionArgs& args, std::byte*, const Threads& threads, Profiler* profiler) const override {
    // Averaging takes the heads of one block in turn, so that the order of the sum does not depend on the threads.
    const bool mean = spec_.scores_output == ScoresOutput::kMeanProbabilities;
    const std::int64_t heads_per_task = mean ? spec_.num_heads : 1;
    const std::int64_t head_groups = mean ? 1 : spec_.num_heads;
    threads.parallel_for(spec_.batch * head_groups * blocks_, [&](std::int64_t task, int worker) {
      const std::int64_t begin = task % blocks_ * kRowsPerTask;
      const std::int64_t end = std::min(begin + kRowsPerTask, spec_.query_len);
      const std::int64_t group = task / blocks_ % head_groups;
      const std::int64_t batch = task / blocks_ / head_groups;
      ProfileScope scope(profiler, worker, kZoneReference);
      if (mean) clear_scores(args, batch, begin, end);
      std::int64_t visible = 0;
      for (std::int64_t h = 0; h < heads_per_task; ++h) {
        visible += reference_attention_rows(spec_, args, {batch, group + h, begin, end});
      }
      if (profiler) scope.add(work(args, batch, begin, end, heads_per_task, visible));
    });
  }

 private:
  static void clear_scores(const AttentionArgs& args, std::int64_t batch, std::int64_t begin, std::int64_t end) {
    const Dims& strides = args.scores.strides;  // [B, Sq, Skv]
    float* scores = args.scores.as<float>() + batch * strides[0];
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < args.scores.dims[2]; ++j) scores[i * strides[1] + j * strides[2]] = 0;
    }
  }

  Work work(const AttentionArgs& args, std::int64_t batch, std::int64_t begin, std::int64_t end, std::int64_t heads,
            std::int64_t visible) const {
    const Visibility visibility(spec_, args, batch);
    std::int64_t pairs = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      pairs += std::max<std::int64_t>(visibility.row(i).end - visibility.row(i).begin, 0) + spec_.always_visible_keys;
    }
    const std::int64_t d = spec_.head_dim;
    const std::int64_t dv = *spec_.value_head_dim;
    Work done;
    done.flops_nominal = 2 * (d + dv) * pairs * heads;
    done.flops_executed = (4 * d + 2 * dv) * visible;  // the scores are computed twice
    done.exps = visible;
    done.bytes = static_cast<std::int64_t>(size_bytes(spec_.type)) * heads * (end - begin + spec_.key_len) * (d + dv);
    return done;
  }

  AttentionSpec spec_;
  std::int64_t blocks_;
};

}  // namespace

std::string reference_why_impossible(const AttentionSpec&) { return {}; }

std::unique_ptr<const AttentionImplementation> make_reference(const AttentionSpec& spec) {
  return std::make_unique<ReferenceImplementation>(spec);
}

}  // namespace headway
