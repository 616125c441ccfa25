// Look-up walks the entries: a handful of shapes compares faster than it hashes.
#include "runtime/exec/plan_cache.h"

#include <algorithm>
#include <utility>

namespace headway {
namespace {

template <class T>
bool same_shapes(const std::vector<TensorInfo>& key, std::span<const T> inputs) {
  return std::equal(key.begin(), key.end(), inputs.begin(), inputs.end(),
                    [](const TensorInfo& a, const T& b) { return a.type == b.type && a.dims == b.dims; });
}

}  // namespace

template <class T>
std::shared_ptr<const ShapePlan> PlanCache::find(std::span<const T> inputs) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (!same_shapes(entry.key, inputs)) continue;
    entry.last_use = ++clock_;
    return entry.plan;
  }
  return nullptr;
}

template std::shared_ptr<const ShapePlan> PlanCache::find(std::span<const TensorInfo>);
template std::shared_ptr<const ShapePlan> PlanCache::find(std::span<const ConstTensorView>);

std::shared_ptr<const ShapePlan> PlanCache::newest() {
  const std::lock_guard lock(mutex_);
  const auto last = std::max_element(entries_.begin(), entries_.end(),
                                     [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  return last == entries_.end() ? nullptr : last->plan;
}

std::shared_ptr<const ShapePlan> PlanCache::find_or_make(
    std::span<const TensorInfo> inputs, const std::function<std::shared_ptr<const ShapePlan>()>& make) {
  const std::lock_guard planning(planning_);
  if (auto plan = find(inputs)) return plan;
  auto plan = make();
  insert({inputs.begin(), inputs.end()}, plan);
  return plan;
}

std::shared_ptr<const ShapePlan> PlanCache::take_other(const ShapePlan* kept) {
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.plan.get() != kept; });
  if (at == entries_.end()) return nullptr;
  std::shared_ptr<const ShapePlan> plan = std::move(at->plan);
  entries_.erase(at);
  return plan;
}

bool PlanCache::drop_others(const ShapePlan* kept) noexcept {
  bool dropped = false;
  while (take_other(kept) != nullptr) dropped = true;  // each destroyed after the lock
  return dropped;
}

void PlanCache::insert(std::vector<TensorInfo> key, std::shared_ptr<const ShapePlan> plan) {
  std::shared_ptr<const ShapePlan> evicted;  // destroyed after the lock: freeing a plan's memory takes time
  const std::lock_guard lock(mutex_);
  if (entries_.size() == capacity_) {
    auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                   [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
    evicted = std::move(oldest->plan);
    entries_.erase(oldest);
  }
  entries_.push_back({std::move(key), std::move(plan), ++clock_});
}

}  // namespace headway
