// What a task does with its rows, in the order of a call.
#include "ops/cached_attention/tasks.h"

#include <algorithm>
#include <optional>

#include "ops/cached_attention/few_task.h"
#include "ops/cached_attention/finish_rows.h"
#include "ops/cached_attention/key_block.h"
#include "ops/cached_attention/ordered_task.h"
#include "ops/cached_attention/query_tile.h"

namespace headway {
namespace {

constinit const Zone kZoneFewRows{"few queries", "attention"};
constinit const Zone kZoneTiles{"query tiles", "attention"};
constinit const Zone kZoneFold{"fold splits", "attention"};

}  // namespace

SoftmaxState CachedTasks::state(const CachedTask& task) const {
  const SequencePlan& plan = schedule.plan(task.sequence);
  const std::int64_t rows = call.sequences[task.sequence].tokens * call.geometry.sharing;
  return workspace.state(memory, plan.first_state + (task.kv_head * plan.splits + task.split) * rows);
}

/// Of rows [begin, end), for the profile: what the mathematics needs, keys by tokens.
Work CachedTasks::work(const HeadKeys& keys, std::int64_t begin, std::int64_t end) const {
  std::int64_t pairs = 0;
  for (std::int64_t r = begin; r < end; ++r) {
    const KeyRange seen = keys.seen(keys.row(r));
    pairs += seen.end - seen.begin;
  }
  const std::int64_t width = call.spec.head_dim + *call.spec.value_head_dim;
  const std::int64_t read = std::max<std::int64_t>(keys.keys.end - keys.keys.begin, 0);
  return {.flops_nominal = 2 * pairs * width,
          .flops_executed = 2 * (end - begin) * read * width,
          .exps = (end - begin) * read,
          .bytes = read * width * static_cast<std::int64_t>(size_bytes(call.spec.cache_type))};
}

void CachedTasks::run(std::int64_t index, int worker) const {
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

void CachedTasks::few_rows(const HeadKeys& keys, const CachedTask& task, int worker) const {
  ProfileScope scope(profiler, worker, kZoneFewRows);
  const std::int64_t rows = keys.sequence.tokens * call.geometry.sharing;
  const std::int64_t columns = *call.spec.value_head_dim;
  const bool split = schedule.plan(task.sequence).splits > 1;
  SoftmaxState states = split ? state(task) : workspace.few_state(memory, worker, 0);
  if (!call.spec.batch_invariant) {
    run_few_rows(keys, workspace.few_scratch(memory, worker), states);
  } else {
    const SoftmaxState ordered = run_ordered_rows(keys, workspace, memory, worker);
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

void CachedTasks::tiles(const HeadKeys& keys, const CachedTask& task, int worker) const {
  ProfileScope scope(profiler, worker, kZoneTiles);
  const CachedGeometry& geometry = call.geometry;
  const std::int64_t rows = keys.sequence.tokens * geometry.sharing;
  const std::int64_t first = task.group * schedule.tiles_per_task();
  const auto count = static_cast<int>(std::min(schedule.tiles_per_task(), geometry.tiles(rows) - first));
  std::optional<CachedQueryTile> tiles[CachedGeometry::kMaxTiles];
  KeyRange hull{keys.keys.end, keys.keys.begin};
  for (int t = 0; t < count; ++t) {
    tiles[t].emplace(keys, geometry.tile(rows, first + t), workspace, memory, worker, t);
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
      read_key_block(keys, {key, end}, workspace.tile_scratch(memory, worker), &block);
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

void CachedTasks::fold_row(std::int64_t index) const {
  const std::int64_t b = schedule.sequence_of_split_row(index);
  const SequencePlan& plan = schedule.plan(b);
  const Sequence sequence = call.sequences[b];
  const std::int64_t rows = sequence.tokens * call.geometry.sharing;
  const std::int64_t at = index - plan.first_row;
  const std::int64_t kv_head = at / rows, row = at % rows;
  const auto state_of = [&](std::int64_t split) {
    return workspace.state(memory, plan.first_state + (kv_head * plan.splits + split) * rows + row);
  };
  const auto fold = [&](std::int64_t a, std::int64_t c) {
    const SoftmaxState left = state_of(a), right = state_of(c);
    call.kernels.states.fold_row({.rows = 1,
                                  .columns = *call.spec.value_head_dim,
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
  const std::int64_t token = sequence.first_token + row / call.geometry.sharing;
  write_row(call, token, kv_head * call.geometry.sharing + row % call.geometry.sharing, state_of(tree.finish()));
}

void CachedTasks::fold_rows(std::int64_t begin, std::int64_t end, int worker) const {
  const ProfileScope scope(profiler, worker, kZoneFold);
  for (std::int64_t row = begin; row < end; ++row) fold_row(row);
}

}  // namespace headway
