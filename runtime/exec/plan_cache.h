// Shape plans by concrete input shapes: bounded, the least recently used goes first. A plan in use survives its
// eviction. Knows nothing of how a plan is made.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/exec/shape_plan.h"

namespace headway {

class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  /// Null when the shapes are new. Allocates nothing. `T` is TensorInfo or ConstTensorView.
  template <class T>
  std::shared_ptr<const ShapePlan> find(std::span<const T> inputs);

  /// The plan used last; null when there is none.
  std::shared_ptr<const ShapePlan> newest();

  /// The plan of these shapes, made by `make` unless somebody else has just made it. One plan is made at a time:
  /// planning packs weights, which many threads at once would do many times over.
  std::shared_ptr<const ShapePlan> find_or_make(std::span<const TensorInfo> inputs,
                                                const std::function<std::shared_ptr<const ShapePlan>()>& make);

  /// Forgets all plans but `kept`, which may be null, to make room. False when there was none to forget. Allocates
  /// nothing: it is called where memory has run out.
  bool drop_others(const ShapePlan* kept) noexcept;

 private:
  struct Entry {
    std::vector<TensorInfo> key;
    std::shared_ptr<const ShapePlan> plan;
    std::uint64_t last_use;
  };
  /// Removes one plan that is not `kept`; null when there is none.
  std::shared_ptr<const ShapePlan> take_other(const ShapePlan* kept);
  void insert(std::vector<TensorInfo> key, std::shared_ptr<const ShapePlan> plan);

  const std::size_t capacity_;
  std::mutex planning_;  // taken before mutex_, and held while a plan is made
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace headway
