// Lists the paths, and says which take a problem.
#include "tests/support/paths.h"

#include <cctype>
#include <ostream>

#include "ops/attention/implementation.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/target.h"

namespace headway::testing {
namespace {

/// Whether there is anything to test: a target without products of pairs refuses every spec.
bool has_pairs(const std::string& target) {
  const SimdCap cap(target);
  return bf16_tile_kernels().score != nullptr;
}

}  // namespace

std::vector<Path> all_paths() {
  std::vector<Path> paths;
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    for (const std::string& implementation : attention_implementations()) {
      if (implementation == "reference") {
        paths.push_back({implementation, "", type});
        continue;
      }
      for (const std::string& target : simd_targets()) {
        if (implementation == "bf16_pairs" && (type != DataType::kBF16 || !has_pairs(target))) continue;
        paths.push_back({implementation, target, type});
      }
    }
  }
  return paths;
}

bool rounds_weights(const Path& path) {
  return path.type == DataType::kBF16 && (path.implementation == "onednn_tiles" || path.implementation == "bf16_pairs");
}

std::int64_t head_width(const Path& path, std::int64_t width) {
  if (!rounds_weights(path)) return width;
  const std::int64_t multiple = path.implementation == "bf16_pairs" ? 2 : 32;
  return (width + multiple - 1) / multiple * multiple;
}

std::string name(const Path& path) {
  std::string text = path.implementation;
  if (!path.simd.empty()) text.append("_").append(path.simd);
  if (path.type != DataType::kF32) text.append("_").append(type_name(path.type));
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Path& path) { return out << name(path); }

SimdCap::SimdCap(const std::string& target) : capped_(!target.empty()) {
  if (capped_) cap_simd_target(target);
}

SimdCap::~SimdCap() {
  if (capped_) cap_simd_target("");
}

std::string refusal(const Path& path, const AttentionSpec& spec) {
  const SimdCap cap(path.simd);
  for (const ImplementationEntry& entry : implementation_table()) {
    if (entry.name == path.implementation) return entry.why_impossible(spec);
  }
  return "unknown";
}

}  // namespace headway::testing
