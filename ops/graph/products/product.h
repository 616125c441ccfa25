// c = a·b for batches of f32 matrices: with b packed where it is known, by plain tiles where it is not. Decides that
// choice and the tasks, by shape alone. Knows no operator.
#pragma once

#include <memory>
#include <string>

#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// c[batch…, M, N] = a[a_batch…, M, K]·b[b_batch…, K, N], all contiguous. The three batches have one rank, and the dims
/// of a_batch and b_batch are those of batch or 1.
struct ProductSpec {
  Dims batch = {}, a_batch = {}, b_batch = {};
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_b = false;  ///< b is [b_batch…, N, K]
};

/// What a product runs on. The workspace is 64-byte aligned and has workspace_bytes(threads.workers()).
struct ProductRun {
  const float* a;
  const float* b;  ///< not read when b was known
  float* c;
  std::byte* workspace;
  const Threads& threads;
  Profiler* profiler;
};

class Product {
 public:
  virtual ~Product() = default;
  virtual std::size_t workspace_bytes(int workers) const = 0;
  virtual std::string explain() const = 0;
  /// True when b is packed, so that a run does not read it.
  virtual bool packs_b() const = 0;
  /// Thread-safe with distinct workspaces; allocates nothing.
  virtual void run(const ProductRun& args) const = 0;
};

/// `known_b` is [K, N] with any strides, or absent; it is packed, which needs a single b for all of a. `bias` [N] goes
/// with a packed b only and is copied.
std::unique_ptr<const Product> make_product(const ProductSpec& spec, const ConstTensorView& known_b = {},
                                            const ConstTensorView& bias = {});

/// True when make_product() packs a known b of this spec.
bool can_pack(const ProductSpec& spec);

/// Elements from the first matrix to that of entry `index` of `batch`, in an operand with these batch dims (each that
/// of `batch` or 1) and `matrix` elements a matrix.
std::int64_t batch_offset(const Dims& batch, const Dims& operand, std::int64_t matrix, std::int64_t index);

}  // namespace headway
