// What is known of each value before a run: constants as they lie, results of folding, views of either. Decides when a
// constant in a file gets an aligned copy, and for how long.
#pragma once

#include <memory>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"
#include "runtime/exec/memory_budget.h"

namespace headway {

class ConstantTable {
 public:
  /// The constants of a graph, which must outlive the table. What is made of them is charged to `budget`.
  ConstantTable(const Graph& graph, std::shared_ptr<MemoryBudget> budget);
  /// What `base` knows, to be added to; `base` must outlive the table.
  explicit ConstantTable(const ConstantTable* base);

  /// Absent where the value is not known. Right in type and dims; in a file it may lie at any alignment.
  ConstTensorView unaligned_view(ValueId value) const;
  /// Null unless the value is a constant in a file, or a view of one.
  const ExternalBuffer* foreign(ValueId value) const { return value == kNoValue ? nullptr : entries_[value].foreign; }

  /// Bytes of the graph's constants.
  std::size_t constant_bytes() const { return constant_bytes_; }
  /// Bytes of what set() was given and release() has not taken back, by the base too.
  std::size_t made_bytes() const { return made_bytes_; }
  MemoryBudget& budget() const { return *budget_; }
  const std::shared_ptr<MemoryBudget>& shared_budget() const { return budget_; }
  /// Type and dims of a value that is known, or was before release(); absent for others.
  TensorInfo info(ValueId value) const;

  /// Throws kOutOfMemory when the budget has no room for the tensor.
  void set(ValueId value, Tensor tensor);
  /// `value` has the elements of `shown` under the dims of `info`.
  void set_view(ValueId value, ValueId shown, const TensorInfo& info);
  /// Forgets what set() was given, because nobody reads it any more; views of it still have it. Constants stay.
  void release(ValueId value);

 private:
  struct Owned {
    Tensor tensor;
    MemoryCharge charge;
  };
  struct Entry {
    ConstTensorView view;
    const ExternalBuffer* foreign = nullptr;
    std::shared_ptr<const Owned> owner = nullptr;
    bool released = false;
  };
  std::vector<Entry> entries_;
  std::shared_ptr<MemoryBudget> budget_;
  std::size_t constant_bytes_ = 0;
  std::size_t made_bytes_ = 0;
};

/// Aligned views of what a table knows, for as long as the object lives.
class AlignedViews {
 public:
  explicit AlignedViews(const ConstantTable& table) : table_(table) {}
  /// Lets the system take back the pages of the file that it has made others read.
  ~AlignedViews();
  AlignedViews(const AlignedViews&) = delete;
  AlignedViews& operator=(const AlignedViews&) = delete;

  ConstTensorView view(ValueId value);
  /// What keeps the copies alive.
  const std::vector<std::shared_ptr<const std::byte>>& handles() const { return handles_; }

 private:
  const ConstantTable& table_;
  std::vector<std::shared_ptr<const std::byte>> handles_;
  std::vector<const ExternalBuffer*> read_;
};

}  // namespace headway
