// One oneDNN matmul on the calling thread: the only place that knows how oneDNN 2.6 and 3.x differ, how many threads
// oneDNN would use, and how to execute without allocating. Decides no shapes and no splits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::onednn {

/// Keeps oneDNN on the calling thread while it lives. oneDNN asks OpenMP for its default number of threads, both when
/// a primitive is made and when it runs, and answers 1 by itself only inside an active parallel region: on a thread of
/// a host's pool or in a serial run it would start a team of its own. The setting changed here (OpenMP's nthreads-var)
/// belongs to the current task of the current thread, so no other thread of the host ever sees it, and it is put back.
/// Inside a parallel region it is set as well: with nesting on, a primitive made for n threads would open a region.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

/// Throws what a dnnl::error is as an Error: kOutOfMemory, else kInternal saying what could not be done.
[[noreturn]] void throw_error(const dnnl::error& error, const char* what);

/// Returns what `work` returns; no dnnl::error leaves it.
template <class Work>
decltype(auto) translate_errors(const char* what, Work&& work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    throw_error(error, what);
  }
}

/// The process's CPU engine.
const dnnl::engine& engine();

/// [rows, columns] f32 or bf16 with `stride` elements between rows. Unit dims get the strides of a dense matrix: an odd
/// stride on a unit dim has sent releases of oneDNN to their slowest path.
dnnl::memory::desc matrix_desc(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                               DataType type = DataType::kF32);
/// The same memory read as its transpose: [columns, rows].
dnnl::memory::desc transposed_desc(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                                   DataType type = DataType::kF32);
/// [rows, columns] in the layout that the matmul chooses.
dnnl::memory::desc any_desc(std::int64_t rows, std::int64_t columns, DataType type = DataType::kF32);

/// True when oneDNN has bf16 dot products or tiles of this CPU to multiply with (AVX-512 BF16, AMX).
bool cpu_multiplies_bf16();

/// c = a·b (+ bias), or c += a·b. Sums are f32 whatever the types.
struct MatmulDescs {
  dnnl::memory::desc a;     // [M, K]
  dnnl::memory::desc b;     // [K, N]
  dnnl::memory::desc c;     // [M, N]
  dnnl::memory::desc bias;  // [1, N], or empty
  bool with_bias = false;
  bool accumulate = false;
};

/// What one execution works on. `b` and `bias` are memory objects where they are fixed for the life of a plan: giving a
/// blocked memory object a new pointer makes oneDNN write its padding.
struct MatmulOperands {
  const void* a;
  const void* b;  // used when b_memory is null
  dnnl_memory_t b_memory;
  dnnl_memory_t bias_memory;
  void* c;
  std::byte* scratch;  // 64-byte aligned, scratch_bytes()
};

/// A matmul ready to run, single-threaded, with its scratchpad given by the caller. Immovable; thread-safe: every
/// execution borrows a set of memory objects from a pool, which starts with one per hardware thread and grows when more
/// executions than that run at once.
class Matmul {
 public:
  /// Throws Error kInternal when oneDNN has no implementation.
  explicit Matmul(const MatmulDescs& descs);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  const std::string& implementation() const { return implementation_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  dnnl::memory::desc b_desc() const { return primitive_desc_.weights_desc(); }
  /// On the calling thread. Allocates nothing of ours while the pool is large enough.
  void execute(const MatmulOperands& operands) const;

 private:
  struct Slot;
  std::unique_ptr<Slot> make_slot() const;
  void fill_pool();
  std::unique_ptr<Slot> borrow() const;
  void give_back(std::unique_ptr<Slot> slot) const;

  dnnl::matmul::primitive_desc primitive_desc_;
  dnnl::matmul primitive_;
  std::string implementation_;
  std::size_t scratch_bytes_ = 0;

  static constexpr int kPlaces = 32;
  struct alignas(64) Place {
    std::atomic<Slot*> slot{nullptr};
    ~Place();
  };
  mutable std::array<Place, kPlaces> places_;  // a thread finds the slot it used last, without a lock
  mutable std::mutex overflow_mutex_;
  mutable std::vector<std::unique_ptr<Slot>> overflow_;  // slots of the threads beyond kPlaces
};

/// Copies between layouts, on the calling thread.
void reorder(dnnl::memory from, dnnl::memory to);

}  // namespace headway::onednn
