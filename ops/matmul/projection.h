// One implementation of a projection with packed weights, and the ordered table of them. Knows neither oneDNN nor SIMD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/matmul/matmul.h"

namespace headway {

/// Immutable after creation; run_task() is re-entrant with distinct workers or workspaces and allocates nothing.
class Projection {
 public:
  virtual ~Projection() = default;
  /// Kernel and split: "onednn brg:avx512_core, 12 tasks of 512 × 256".
  virtual std::string explain() const = 0;
  virtual std::size_t workspace_bytes(int workers) const = 0;
  virtual std::int64_t tasks() const = 0;
  virtual void run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const = 0;
  virtual Work task_work(std::int64_t task) const = 0;
  virtual MatmulTile task_tile(std::int64_t task) const = 0;
};

/// Weights [N, K] of spec.type and bias [N] as f32, or null, as checked by PlannedMatmul.
struct ProjectionSource {
  PlannedMatmulSpec spec;
  ConstTensorView weight;
  const float* bias;
  /// One of the same weight and bias, whose packed form may be shared; null: none.
  const Projection* same = nullptr;
};

struct ProjectionEntry {
  const char* name;
  /// Why a later entry is better for this shape on this machine; empty: take it.
  std::string (*why_not_preferred)(const PlannedMatmulSpec& spec);
  std::unique_ptr<const Projection> (*create)(const ProjectionSource& source);
};

/// Of x, weight and y of this type: best first; the last refuses nothing.
std::span<const ProjectionEntry> projection_table(DataType type);

std::string highway_projection_why_not_preferred(const PlannedMatmulSpec& spec);
std::unique_ptr<const Projection> make_highway_projection(const ProjectionSource& source);
std::string onednn_projection_why_not_preferred(const PlannedMatmulSpec& spec);
std::unique_ptr<const Projection> make_onednn_projection(const ProjectionSource& source);

}  // namespace headway
