// What one run needs while it runs, kept between runs so that a run allocates nothing: arena, workspace, tables of
// views. And the pool that grows to the number of concurrent runs and no further.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "headway/tensor.h"
#include "runtime/exec/memory_budget.h"

namespace headway {

/// A value as its readers and its writer see it.
struct ValueViews {
  ConstTensorView readable;
  TensorView writable;  ///< absent for inputs and constants

  ValueViews() = default;
  ValueViews& operator=(const TensorView& view) {
    readable = view;
    writable = view;
    return *this;
  }
};

struct RunState {
  MemoryCharge charge;  ///< for all of the buffers below
  AlignedBuffer arena;
  AlignedBuffer workspace;
  int workers = 0;  ///< that the workspace was last checked for
  std::vector<ValueViews> values;
  std::vector<ConstTensorView> node_inputs;  ///< as long as the longest list of a node
  std::vector<TensorView> node_outputs;
  /// Contiguous stand-ins for tensors of the caller that are strided; made when the first one comes.
  std::vector<AlignedBuffer> input_staging;
  std::vector<AlignedBuffer> output_staging;
};

class RunStatePool {
 public:
  /// A free state, one last used with as many workers if there is one; null when none is free.
  std::unique_ptr<RunState> take(int workers);
  void give_back(std::unique_ptr<RunState> state) noexcept;
  /// To be called once for every state that take() did not have, before it is given back.
  void announce_new();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> free_;
  std::size_t made_ = 0;
};

}  // namespace headway
