// Which implementation a projection takes, by shape and SIMD target. The measured thresholds stand here and nowhere
// else.
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/matmul/projection.h"
#include "ops/simd/target.h"

namespace headway {
namespace {

constexpr ProjectionEntry kTable[] = {
    {"highway", highway_projection_why_not_preferred, make_highway_projection},
    {"onednn", onednn_projection_why_not_preferred, make_onednn_projection},
};

/// Only oneDNN uses the CPU's bf16 products. Where it cannot, or is slower, the packed GEMM takes any shape.
constexpr ProjectionEntry kTableBf16[] = {
    {"onednn", onednn_projection_why_not_preferred, make_onednn_projection},
    {"highway", highway_projection_why_not_preferred, make_highway_projection},
};

/// Share of the FMA peak, one thread (perf/LIMITS.md has the runs): with 8-lane vectors oneDNN reaches 30–41 % for
/// M ≤ 128 and 80–87 % at M ≥ 512, the packed product 84–91 % and 82–87 %. With 16-lane vectors on AMD oneDNN's blocked
/// kernel reaches 91–97 % on large blocks, and less than the packed product below that; on Intel (oneDNN 2.6) it is
/// behind at every size, 78 % against 82 % at 512 × 3072, and 69 against 76 at a depth of 12288.
constexpr std::int64_t kOnednnRows = 512;
constexpr std::int64_t kOnednnColumns = 2048;

/// One thread, N = K = 1024, Intel with AMX, oneDNN 2.6, GF/s of oneDNN against the packed product, weights in
/// caches (from memory): M = 1: 14 – 19 against 26 (8 against 13), M = 8: 128 against 130 (68 against 76),
/// M = 32: 400 against 130 (200 against 120), M = 128: 700 against 135, M = 512: 650 against 140; the f32 product has
/// 160. Up to 8 rows the weights' traffic decides, and a single tile of rows.
constexpr std::int64_t kOnednnBf16Rows = 9;

}  // namespace

std::span<const ProjectionEntry> projection_table(DataType type) {
  if (type == DataType::kBF16) return kTableBf16;
  return kTable;
}

std::string highway_projection_why_not_preferred(const PlannedMatmulSpec& spec) {
  if (spec.depth == 0 || spec.type == DataType::kBF16) return {};
  if (simd_lanes() >= 16 && cpu_is_amd() && spec.rows >= kOnednnRows && spec.columns >= kOnednnColumns) {
    return "oneDNN's blocked kernel is faster at " + std::to_string(spec.rows) + " × " + std::to_string(spec.columns) +
           " with 16 lanes on AMD";
  }
  return {};
}

std::string onednn_projection_why_not_preferred(const PlannedMatmulSpec& spec) {
  if (spec.type != DataType::kBF16) return {};
  if (spec.depth == 0) return "the sums are empty";
  if (spec.depth % onednn::kBf16DepthMultiple != 0) {
    return "its bf16 products are trusted with depths that are a multiple of " +
           std::to_string(onednn::kBf16DepthMultiple) + ", not " + std::to_string(spec.depth);
  }
  if (simd_lanes() < 16)
    return "its bf16 products need 16 lanes, " + simd_target() + " has " + std::to_string(simd_lanes());
  if (spec.rows < kOnednnBf16Rows) {
    return "the packed product is faster below " + std::to_string(kOnednnBf16Rows) + " rows, there are " +
           std::to_string(spec.rows);
  }
  return onednn::packed_bf16_refusal();
}

}  // namespace headway
