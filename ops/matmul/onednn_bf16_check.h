// Whether oneDNN's bf16 products are right: some releases returned corrupt ones on some CPUs. Decides by multiplying
// and comparing with a scalar loop; depends on neither oneDNN nor its callers.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::onednn {

/// One product to check a path on: c = a·bᵀ + bias.
struct Bf16Problem {
  std::int64_t rows, columns, depth;
  std::vector<BFloat16> a;  // [M, K]
  std::vector<BFloat16> b;  // [N, K]
  std::vector<float> bias;  // [N]
};

/// Multiplies one problem its own way into c [M, N], which starts as NaN.
using Bf16Product = std::function<void(const Bf16Problem& problem, float* c)>;

/// Depths for which oneDNN's kernels with AMX tiles are trusted. Release 2.6 raises an illegal instruction at depth 63
/// (195 × 3 × 63, 70 × 298 × 63), which no self-check survives; 2,000 other shapes ran, and what models have is a
/// multiple of 32, the depth of a tile.
inline constexpr std::int64_t kBf16DepthMultiple = 32;

/// Empty when `product` is right on a few odd shapes and a typical one; otherwise one line about the first element that
/// is not. Depths are rounded up to a multiple of `depth_multiple`. An Error that it throws counts as a fault.
std::string bf16_product_fault(const Bf16Product& product, std::int64_t depth_multiple = 1);

/// The verdict on one path: reached at the first call, cached, and printed to standard error once when it is bad.
/// Thread-safe.
class Bf16SelfCheck {
 public:
  /// `path` names it in the message.
  Bf16SelfCheck(const char* path, Bf16Product product, std::int64_t depth_multiple = 1)
      : path_(path), product_(std::move(product)), depth_multiple_(depth_multiple) {}
  /// Why the path must not be used; empty: it may.
  const std::string& refusal();

 private:
  const char* path_;
  Bf16Product product_;
  std::int64_t depth_multiple_;
  std::once_flag once_;
  std::string refusal_;
};

/// True when oneDNN multiplies bf16 with the matrix tiles of this CPU (AMX) and not only with dot products.
bool bf16_has_tiles();

/// The paths of this process. Both refuse on a CPU that has no bf16 products, and print nothing.
/// Weights in a layout of oneDNN's own, result bf16, depths of kBf16DepthMultiple: projections.
const std::string& packed_bf16_refusal();
/// Plain operands, b as given or transposed, result f32, overwritten or accumulated: tiles.
const std::string& plain_bf16_refusal();

}  // namespace headway::onednn
