// The public class: plan, check, the main pass over tasks, and the pass that adds up the states of split rows. Decides
// the order of these; what happens in a task is tasks.cc's.
#include "headway/cached_attention.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "ops/attention/check_args.h"
#include "ops/cached_attention/call.h"
#include "ops/cached_attention/check_args.h"
#include "ops/cached_attention/schedule.h"
#include "ops/cached_attention/spec.h"
#include "ops/cached_attention/tasks.h"
#include "ops/cached_attention/workspace.h"
#include "runtime/base/bad_alloc.h"

namespace headway {

struct CachedAttention::Impl {
  explicit Impl(const CachedAttentionSpec& given)
      : spec(complete_spec(given)), geometry(spec, kernels.tile), workspace(spec, geometry) {}

  CachedAttentionSpec spec;
  CachedKernels kernels;
  CachedGeometry geometry;
  CachedWorkspace workspace;
};

CachedAttention::CachedAttention(const CachedAttentionSpec& spec)
    : impl_(translate_bad_alloc([&] { return std::make_unique<const Impl>(spec); })) {}
CachedAttention::~CachedAttention() = default;
CachedAttention::CachedAttention(CachedAttention&&) noexcept = default;
CachedAttention& CachedAttention::operator=(CachedAttention&&) noexcept = default;

const CachedAttentionSpec& CachedAttention::spec() const { return impl_->spec; }

std::string CachedAttention::explain() const {
  const CachedGeometry& g = impl_->geometry;
  std::ostringstream text;
  text << impl_->kernels.tile.target << ", " << type_name(impl_->spec.type) << " over a cache of "
       << type_name(impl_->spec.cache_type) << ", " << g.sharing << " heads per key head, tiles of " << g.tile_lanes
       << " rows, blocks of " << CachedGeometry::kKeyBlock << " keys, ";
  text << "up to " << g.few_rows << " rows share each reading of a key";
  if (g.span_keys > 0) text << ", batch-invariant in spans of " << g.span_keys << " keys";
  text << ", splits from " << g.min_split_keys << " keys on, workspace " << workspace_bytes(1) << " bytes";
  return text.str();
}

CachedAttentionPlan CachedAttention::plan(const CachedAttentionArgs& args) const {
  check_cached_args(impl_->spec, args);
  const Sequences sequences(impl_->spec, args);
  return translate_bad_alloc([&] {
    std::vector<SequencePlan> plans(static_cast<std::size_t>(sequences.count()) + 1);
    return Schedule(impl_->spec, impl_->geometry, sequences, plans.data()).summary();
  });
}

std::size_t CachedAttention::workspace_bytes(int workers) const { return impl_->workspace.bytes(workers); }

void CachedAttention::run(const CachedAttentionArgs& args, std::byte* workspace, const Threads& threads,
                          Profiler* profiler) const try {
  check_cached_args(impl_->spec, args);
  check_workspace(workspace, workspace_bytes(threads.workers()), threads.workers());
  const Sequences sequences(impl_->spec, args);
  const RowBias bias(args);
  const CachedCall call{impl_->spec, impl_->geometry, impl_->kernels, args, sequences, bias};
  const Schedule schedule(impl_->spec, impl_->geometry, sequences, impl_->workspace.plans(workspace));
  const CachedTasks tasks{call, impl_->workspace, schedule, workspace, profiler};
  threads.parallel_for(schedule.tasks(), [&](std::int64_t task, int worker) { tasks.run(task, worker); });
  const std::int64_t rows = schedule.split_rows();
  if (rows == 0) return;
  const std::int64_t rows_per_task = ceil_div(rows, CachedGeometry::kEnoughTasks);
  threads.parallel_for(ceil_div(rows, rows_per_task), [&](std::int64_t task, int worker) {
    tasks.fold_rows(task * rows_per_task, std::min((task + 1) * rows_per_task, rows), worker);
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
