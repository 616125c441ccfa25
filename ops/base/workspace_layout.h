// The layout of a workspace: arrays are declared once, when a plan is made; that gives both the bytes of the whole and,
// in a run, the address of each array. Decides alignment; knows no operator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"
#include "ops/base/layout.h"

namespace headway {

/// An array of T in the region that it was declared for.
template <class T>
struct WorkspaceArray {
  std::size_t offset_bytes = 0;
  T* in(std::byte* region) const { return reinterpret_cast<T*>(region + offset_bytes); }
};

/// Two regions: the shared one at the start of the workspace, then one per worker. Every array starts on a cache line.
class WorkspaceLayout {
 public:
  /// In the shared region, which starts where the workspace does.
  template <class T>
  WorkspaceArray<T> shared(std::int64_t count) {
    return place<T>(count, &shared_bytes_);
  }
  /// In the region of each worker.
  template <class T>
  WorkspaceArray<T> per_worker(std::int64_t count) {
    return place<T>(count, &worker_bytes_);
  }
  /// A tensor in the shared region: where it begins.
  std::size_t take(DataType type, const Dims& dims) {
    return shared<std::byte>(static_cast<std::int64_t>(tensor_bytes(type, dims))).offset_bytes;
  }

  std::size_t bytes(int workers) const { return shared_bytes_ + worker_bytes_ * static_cast<std::size_t>(workers); }
  /// Of the shared region alone.
  std::size_t bytes() const { return shared_bytes_; }
  std::size_t worker_bytes() const { return worker_bytes_; }
  std::byte* worker_region(std::byte* workspace, int worker) const {
    return workspace + shared_bytes_ + worker_bytes_ * static_cast<std::size_t>(worker);
  }

 private:
  template <class T>
  static WorkspaceArray<T> place(std::int64_t count, std::size_t* end) {
    const WorkspaceArray<T> array{*end};
    *end += static_cast<std::size_t>(round_up(count * static_cast<std::int64_t>(sizeof(T)), kCacheLineBytes));
    return array;
  }

  std::size_t shared_bytes_ = 0;
  std::size_t worker_bytes_ = 0;
};

/// A tensor of the run's own in the shared region, or none.
struct WorkspaceSlot {
  bool used = false;
  std::size_t at = 0;
  DataType type = DataType::kF32;
  Dims dims;
  TensorView in(std::byte* workspace) const { return {workspace + at, type, dims}; }
};

inline WorkspaceSlot book(WorkspaceLayout* layout, bool used, DataType type, const Dims& dims) {
  return used ? WorkspaceSlot{true, layout->take(type, dims), type, dims} : WorkspaceSlot{};
}

}  // namespace headway
