// Tensors that a plan wants in its workspace: booked when the plan is made, found again when it runs.
#pragma once

#include <cstddef>

#include "headway/tensor.h"

namespace headway {

/// Books pieces of a workspace at plan time; each starts on a cache line.
class WorkspaceLayout {
 public:
  std::size_t take(DataType type, const Dims& dims) {
    const std::size_t at = bytes_;
    bytes_ += (tensor_bytes(type, dims) + 63) / 64 * 64;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// A tensor of the run's own.
struct WorkspaceSlot {
  bool used = false;
  std::size_t at = 0;
  DataType type = DataType::kF32;
  Dims dims;
  TensorView in(std::byte* workspace) const { return {workspace + at, type, dims}; }
};

inline WorkspaceSlot book(WorkspaceLayout* pieces, bool used, DataType type, const Dims& dims) {
  return used ? WorkspaceSlot{true, pieces->take(type, dims), type, dims} : WorkspaceSlot{};
}

}  // namespace headway
