// The double reference as an implementation: takes every spec and is fast at none. Decides only the tasks.
#include <algorithm>

#include "ops/attention/epilogue/score_output.h"
#include "ops/attention/implementation.h"
#include "ops/attention/visibility.h"
#include "ops/base/layout.h"
#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

/// Scores, softmax and context are one loop here and cannot be timed apart.
constinit const Zone kZoneReference{"reference", "attention"};

constexpr std::int64_t kRowsPerTask = 16;

class ReferenceImplementation final : public AttentionImplementation {
 public:
  explicit ReferenceImplementation(const AttentionSpec& spec)
      : spec_(spec), tiles_(ceil_div(spec.query_len, kRowsPerTask)) {}

  std::string explain() const override {
    return "double precision, " + std::to_string(kRowsPerTask) + " rows per task, workspace 0 bytes";
  }
  std::size_t workspace_bytes(int) const override { return 0; }

  void run(const AttentionArgs& args, std::byte*, const Threads& threads, Profiler* profiler) const override {
    const std::int64_t in_turn = heads_in_turn(spec_);
    const std::int64_t head_groups = spec_.num_heads / in_turn;
    threads.parallel_for(spec_.batch * head_groups * tiles_, [&](std::int64_t task, int worker) {
      const std::int64_t begin = task % tiles_ * kRowsPerTask;
      const std::int64_t end = std::min(begin + kRowsPerTask, spec_.query_len);
      const std::int64_t first_head = task / tiles_ % head_groups * in_turn;
      const std::int64_t batch = task / tiles_ / head_groups;
      ProfileScope scope(profiler, worker, kZoneReference);
      if (has_mean_probs(spec_)) ScoreOutput(spec_, args).clear_mean(batch, begin, end);
      std::int64_t visible = 0;
      for (std::int64_t h = 0; h < in_turn; ++h) {
        visible += reference_attention_rows(spec_, args, {batch, first_head + h, begin, end});
      }
      if (profiler) scope.add(work(args, batch, begin, end, in_turn, visible));
    });
  }

 private:
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
  std::int64_t tiles_;
};

}  // namespace

std::string reference_why_impossible(const AttentionSpec&) { return {}; }

std::unique_ptr<const AttentionImplementation> make_reference(const AttentionSpec& spec) {
  return std::make_unique<ReferenceImplementation>(spec);
}

}  // namespace headway
