// The public class: plan, check, the main pass over tasks, and the pass that adds up the states of split rows. Decides
// the order of these; what happens in one is few_task.cc's and query_tile.cc's.
#include "headway/cached_attention.h"

#include <algorithm>
#include <sstream>

#include "ops/attention/check_args.h"
#include "ops/cached_attention/call.h"
#include "ops/cached_attention/check_args.h"
#include "ops/cached_attention/few_task.h"
#include "ops/cached_attention/finish_rows.h"
#include "ops/cached_attention/ordered_task.h"
#include "ops/cached_attention/query_tile.h"
#include "ops/cached_attention/schedule.h"
#include "ops/cached_attention/spec.h"
#include "ops/cached_attention/workspace.h"
#include "runtime/base/bad_alloc.h"

namespace headway {
namespace {

constinit const Zone kZoneFewRows{"few queries", "attention"};
constinit const Zone kZoneTiles{"query tiles", "attention"};
constinit const Zone kZoneFold{"fold splits", "attention"};

}  // namespace

struct CachedAttention::Impl {
  explicit Impl(const CachedAttentionSpec& given)
      : spec(complete_spec(given)), geometry(spec, kernels.tile), workspace(spec, geometry, kernels.tile) {}

  /// One run: what its passes share.
  struct Run {
    const Impl& impl;
    const CachedCall& call;
    const Schedule& schedule;
    std::byte* memory;
    Profiler* profiler;

    void task(std::int64_t index, int worker) const;
    void few_rows(const HeadKeys& keys, const CachedTask& task, int worker) const;
    void tiles(const HeadKeys& keys, const CachedTask& task, int worker) const;
    void fold_row(std::int64_t index) const;
    Work work(const HeadKeys& keys, std::int64_t begin, std::int64_t end) const;
    /// The state of row 0 of a split.
    SoftmaxState state(const CachedTask& task) const;
  };

  CachedAttentionSpec spec;
  CachedKernels kernels;
  CachedGeometry geometry;
  CachedWorkspace workspace;
};

SoftmaxState CachedAttention::Impl::Run::state(const CachedTask& task) const {
  const SequencePlan& plan = schedule.plan(task.sequence);
  const std::int64_t rows = call.sequences[task.sequence].tokens * impl.geometry.sharing;
  return impl.workspace.state(memory, plan.first_state + (task.kv_head * plan.splits + task.split) * rows);
}

/// Of rows [begin, end), for the profile: what the mathematics needs, keys by tokens.
Work CachedAttention::Impl::Run::work(const HeadKeys& keys, std::int64_t begin, std::int64_t end) const {
  std::int64_t pairs = 0;
  for (std::int64_t r = begin; r < end; ++r) {
    const KeyRange seen = keys.seen(keys.row(r));
    pairs += seen.end - seen.begin;
  }
  const std::int64_t width = impl.spec.head_dim + *impl.spec.value_head_dim;
  const std::int64_t read = std::max<std::int64_t>(keys.keys.end - keys.keys.begin, 0);
  return {.flops_nominal = 2 * pairs * width,
          .flops_executed = 2 * (end - begin) * read * width,
          .exps = (end - begin) * read,
          .bytes = read * width * static_cast<std::int64_t>(size_bytes(impl.spec.cache_type))};
}

void CachedAttention::Impl::Run::task(std::int64_t index, int worker) const {
  const CachedTask task = schedule.task(index);
  const SequencePlan& plan = schedule.plan(task.sequence);
  const Sequence sequence = call.sequences[task.sequence];
  const std::int64_t split = (plan.first_split + task.split) * schedule.split_keys();
  const KeyRange all = call.sequences.seen(sequence, 0, sequence.tokens);
  const KeyRange keys{std::max(all.begin, split), std::min(all.end, split + schedule.split_keys())};
  const HeadKeys head(call, sequence, task.kv_head, keys);
  if (plan.few) {
    few_rows(head, task, worker);
  } else {
    tiles(head, task, worker);
  }
}

void CachedAttention::Impl::Run::few_rows(const HeadKeys& keys, const CachedTask& task, int worker) const {
  ProfileScope scope(profiler, worker, kZoneFewRows);
  const std::int64_t rows = keys.sequence.tokens * impl.geometry.sharing;
  const std::int64_t columns = *impl.spec.value_head_dim;
  const bool split = schedule.plan(task.sequence).splits > 1;
  SoftmaxState states = split ? state(task) : impl.workspace.few_state(memory, worker, 0);
  if (!impl.spec.batch_invariant) {
    run_few_rows(keys, impl.workspace.few_scratch(memory, worker), states);
  } else {
    const SoftmaxState ordered = run_ordered_rows(keys, impl.workspace, memory, worker);
    if (split) {
      std::copy_n(ordered.maximum, rows, states.maximum);
      std::copy_n(ordered.sum, rows, states.sum);
      std::copy_n(ordered.live, rows, states.live);
      std::copy_n(ordered.context, rows * columns, states.context);
    } else {
      states = ordered;
    }
  }
  for (std::int64_t r = 0; r < rows && !split; ++r) {
    const CachedRow row = keys.row(r);
    write_row(call, keys.sequence.first_token + row.token, row.head,
              {states.maximum + r, states.sum + r, states.live + r, states.context + r * columns});
  }
  if (profiler) scope.add(work(keys, 0, rows));
}

void CachedAttention::Impl::Run::tiles(const HeadKeys& keys, const CachedTask& task, int worker) const {
  ProfileScope scope(profiler, worker, kZoneTiles);
  const CachedGeometry& geometry = impl.geometry;
  const std::int64_t rows = keys.sequence.tokens * geometry.sharing;
  const std::int64_t first = task.group * schedule.tiles_per_task();
  const auto count = static_cast<int>(std::min(schedule.tiles_per_task(), geometry.tiles(rows) - first));
  std::optional<CachedQueryTile> tiles[CachedGeometry::kMaxTiles];
  KeyRange hull{keys.keys.end, keys.keys.begin};
  for (int t = 0; t < count; ++t) {
    tiles[t].emplace(keys, geometry.tile(rows, first + t), impl.workspace, memory, worker, t);
    const KeyRange& seen = tiles[t]->seen();
    if (seen.empty()) continue;
    hull = {std::min(hull.begin, seen.begin), std::max(hull.end, seen.end)};
  }
  // A task without keys has one span without keys.
  const std::int64_t span_keys = geometry.span_keys > 0 ? geometry.span_keys : schedule.split_keys();
  std::int64_t key = hull.begin;
  do {
    const std::int64_t span = key / span_keys;
    const std::int64_t span_end = std::min(hull.end, (span + 1) * span_keys);
    for (int t = 0; t < count; ++t) tiles[t]->begin_span(span);
    while (key < span_end) {
      constexpr std::int64_t kBlock = CachedGeometry::kKeyBlock;
      const std::int64_t end = std::min(span_end, (key / kBlock + 1) * kBlock);
      CachedKeyBlock block;
      read_key_block(keys, {key, end}, impl.workspace.tile_scratch(memory, worker), &block);
      for (int t = 0; t < count; ++t) tiles[t]->add_block(block);
      key = end;
    }
    for (int t = 0; t < count; ++t) tiles[t]->end_span();
  } while (key < hull.end);
  const bool split = schedule.plan(task.sequence).splits > 1;
  for (int t = 0; t < count; ++t) {
    if (split) {
      tiles[t]->write_states(state(task));
    } else {
      tiles[t]->write_rows();
    }
  }
  if (profiler) {
    const TileRows last = geometry.tile(rows, first + count - 1);
    scope.add(work(keys, geometry.tile(rows, first).begin, last.begin + last.rows));
  }
}

void CachedAttention::Impl::Run::fold_row(std::int64_t index) const {
  const std::int64_t b = schedule.sequence_of_split_row(index);
  const SequencePlan& plan = schedule.plan(b);
  const Sequence sequence = call.sequences[b];
  const std::int64_t rows = sequence.tokens * impl.geometry.sharing;
  const std::int64_t at = index - plan.first_row;
  const std::int64_t kv_head = at / rows, row = at % rows;
  const auto state_of = [&](std::int64_t split) {
    return impl.workspace.state(memory, plan.first_state + (kv_head * plan.splits + split) * rows + row);
  };
  const auto fold = [&](std::int64_t a, std::int64_t c) {
    const SoftmaxState left = state_of(a), right = state_of(c);
    impl.kernels.states.fold_row({.rows = 1,
                                  .columns = *impl.spec.value_head_dim,
                                  .maximum = left.maximum,
                                  .sum = left.sum,
                                  .live = left.live,
                                  .context = left.context,
                                  .right_maximum = right.maximum,
                                  .right_sum = right.sum,
                                  .right_live = right.live,
                                  .right_context = right.context});
  };
  StateTree tree(fold);
  for (std::int64_t s = 0; s < plan.splits; ++s) tree.add(plan.first_split + s, s);
  const std::int64_t token = sequence.first_token + row / impl.geometry.sharing;
  write_row(call, token, kv_head * impl.geometry.sharing + row % impl.geometry.sharing, state_of(tree.finish()));
}

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
  text << "up to " << CachedGeometry::kMaxFewRows << " rows share each reading of a key";
  if (g.span_keys > 0) text << ", batch-invariant in spans of " << g.span_keys << " keys";
  text << ", splits from " << g.min_split_keys << " keys on, workspace " << workspace_bytes(1) << " bytes";
  return text.str();
}

CachedAttentionPlan CachedAttention::plan(const CachedAttentionArgs& args) const {
  check_cached_args(impl_->spec, args);
  const Sequences sequences(impl_->spec, args);
  std::vector<SequencePlan> plans(static_cast<std::size_t>(sequences.count()) + 1);
  return Schedule(impl_->spec, impl_->geometry, sequences, plans.data()).summary();
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
  const Impl::Run run{*impl_, call, schedule, workspace, profiler};
  threads.parallel_for(schedule.tasks(), [&](std::int64_t task, int worker) { run.task(task, worker); });
  const std::int64_t rows = schedule.split_rows();
  if (rows == 0) return;
  const std::int64_t rows_per_task = ceil_div(rows, CachedGeometry::kEnoughTasks);
  threads.parallel_for(ceil_div(rows, rows_per_task), [&](std::int64_t task, int worker) {
    const ProfileScope scope(profiler, worker, kZoneFold);
    const std::int64_t begin = task * rows_per_task;
    for (std::int64_t r = begin; r < std::min(begin + rows_per_task, rows); ++r) run.fold_row(r);
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
