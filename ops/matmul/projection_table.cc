// Which way a projection takes, by shape and SIMD target. The measured thresholds stand here and nowhere else.
#include "ops/matmul/onednn_adapter.h"
#include "ops/matmul/projection.h"
#include "ops/simd/target.h"

namespace headway {
namespace {

constexpr ProjectionEntry kTable[] = {
    {"highway", highway_projection_refusal, make_highway_projection},
    {"onednn", onednn_projection_refusal, make_onednn_projection},
};

/// Share of the FMA peak, one thread (perf/LIMITS.md has the runs): with 8-lane vectors oneDNN reaches 30–41 % for
/// M ≤ 128 and 80–87 % at M ≥ 512, the packed product 84–91 % and 82–87 %. With 16-lane vectors on AMD oneDNN's blocked
/// kernel reaches 91–97 % on large blocks, and less than the packed product below that; on Intel (oneDNN 2.6) it is
/// behind at every size, 78 % against 82 % at 512 × 3072.
constexpr std::int64_t kOnednnRows = 512;
constexpr std::int64_t kOnednnColumns = 2048;

}  // namespace

std::span<const ProjectionEntry> projection_table() { return kTable; }

std::string highway_projection_refusal(const PackedMatmulSpec& spec) {
  if (spec.depth == 0) return {};
  if (simd_lanes() >= 16 && cpu_is_amd() && spec.rows >= kOnednnRows && spec.columns >= kOnednnColumns) {
    return "oneDNN's blocked kernel is faster at " + std::to_string(spec.rows) + " × " + std::to_string(spec.columns) +
           " with 16 lanes on AMD";
  }
  return {};
}

std::string onednn_projection_refusal(const PackedMatmulSpec&) { return {}; }

}  // namespace headway
