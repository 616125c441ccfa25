// Whole sequences first; keys are split, and query tiles parted, only as far as there would be too few tasks.
#include "ops/cached_attention/schedule.h"

#include <algorithm>
#include <bit>

#include "ops/base/layout.h"

namespace headway {
namespace {

constexpr std::int64_t kLongKeys = 2048;       // sequences that many threads gain from,
constexpr std::int64_t kShortSplitKeys = 512;  // and what is worth adding up in shorter ones

/// The last of plans[0, count) whose `first` is at most `index`, where empty ones share it with their successor.
template <class First>
std::int64_t last_not_after(const SequencePlan* plans, std::int64_t count, std::int64_t index, First first) {
  const SequencePlan* const end =
      std::partition_point(plans, plans + count, [&](const SequencePlan& plan) { return first(plan) <= index; });
  return end - plans - 1;
}

}  // namespace

Schedule::Schedule(const CachedAttentionSpec& spec, const CachedGeometry& geometry, const Sequences& sequences,
                   SequencePlan* plans)
    : spec_(spec), geometry_(geometry), plans_(plans), count_(sequences.count()) {
  // Powers of two times the least, so that a split is a subtree of the tree over spans.
  const std::int64_t whole = ceil_div(std::max<std::int64_t>(spec.max_cache, 1), geometry.min_split_keys);
  split_keys_ = geometry.min_split_keys * static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(whole)));
  tiles_per_task_ = geometry.max_tiles;
  const auto enough = [&] { return count_tasks(sequences) >= CachedGeometry::kEnoughTasks; };
  while (tiles_per_task_ > 1 && !enough()) tiles_per_task_ /= 2;
  const std::int64_t least = least_split(sequences);
  while (split_keys_ > least && !enough()) split_keys_ /= 2;
  fill(sequences);
  // The estimate that booked the workspace is an upper bound; held here all the same, as it guards memory.
  while (plans_[count_].first_state > geometry.state_rows) {
    split_keys_ *= 2;
    fill(sequences);
  }
}

std::int64_t Schedule::least_split(const Sequences& sequences) const {
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < count_; ++b) {
    const Sequence sequence = sequences[b];
    const KeyRange keys = sequences.seen(sequence, 0, sequence.tokens);
    longest = std::max(longest, keys.end - keys.begin);
  }
  return std::max(longest >= kLongKeys ? geometry_.min_split_keys : kShortSplitKeys, geometry_.min_split_keys);
}

std::int64_t Schedule::count_tasks(const Sequences& sequences) const {
  std::int64_t tasks = 0;
  for (std::int64_t b = 0; b < count_; ++b) {
    const Sequence sequence = sequences[b];
    const KeyRange keys = sequences.seen(sequence, 0, sequence.tokens);
    const std::int64_t rows = sequence.tokens * geometry_.sharing;
    const std::int64_t groups =
        rows <= geometry_.few_rows ? (rows > 0 ? 1 : 0) : ceil_div(geometry_.tiles(rows), tiles_per_task_);
    const std::int64_t splits = keys.empty() ? 0 : ceil_div(keys.end, split_keys_) - keys.begin / split_keys_;
    tasks += *spec_.num_kv_heads * groups * std::max<std::int64_t>(splits, 1);
    if (tasks >= CachedGeometry::kEnoughTasks) break;
  }
  return tasks;
}

void Schedule::fill(const Sequences& sequences) {
  SequencePlan next{};
  for (std::int64_t b = 0; b < count_; ++b) {
    const Sequence sequence = sequences[b];
    const KeyRange keys = sequences.seen(sequence, 0, sequence.tokens);
    const std::int64_t rows = sequence.tokens * geometry_.sharing;
    SequencePlan& plan = plans_[b];
    plan = next;
    plan.few = rows <= geometry_.few_rows;
    plan.groups = rows == 0 ? 0 : plan.few ? 1 : ceil_div(geometry_.tiles(rows), tiles_per_task_);
    plan.first_split = keys.begin / split_keys_;
    plan.splits = keys.empty() ? 0 : ceil_div(keys.end, split_keys_) - plan.first_split;
    next.first_task += *spec_.num_kv_heads * plan.groups * std::max<std::int64_t>(plan.splits, 1);
    if (plan.splits > 1) {
      next.first_state += *spec_.num_kv_heads * rows * plan.splits;
      next.first_row += *spec_.num_kv_heads * rows;
    }
  }
  plans_[count_] = next;
}

CachedTask Schedule::task(std::int64_t index) const {
  const std::int64_t b =
      last_not_after(plans_, count_, index, [](const SequencePlan& plan) { return plan.first_task; });
  const std::int64_t at = index - plans_[b].first_task;
  const std::int64_t splits = std::max<std::int64_t>(plans_[b].splits, 1);
  const std::int64_t group = at / splits;
  return {b, group / plans_[b].groups, group % plans_[b].groups, at % splits};
}

std::int64_t Schedule::sequence_of_split_row(std::int64_t row) const {
  return last_not_after(plans_, count_, row, [](const SequencePlan& plan) { return plan.first_row; });
}

CachedAttentionPlan Schedule::summary() const {
  CachedAttentionPlan result;
  result.tasks = tasks();
  result.split_keys = split_keys_;
  for (std::int64_t b = 0; b < count_; ++b) {
    if (plans_[b].splits > 1) ++result.split_sequences;
    if (plans_[b].few) result.few_query_tasks += plans_[b + 1].first_task - plans_[b].first_task;
  }
  return result;
}

}  // namespace headway
