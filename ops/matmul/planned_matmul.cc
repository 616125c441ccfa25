// PlannedMatmul: checks its sizes and weights and takes the first projection of the table that is preferred. Knows
// neither oneDNN nor SIMD.
#include <vector>

#include "ops/base/numeric.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/projection.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

const ProjectionEntry& choose(const PlannedMatmulSpec& spec, std::string* refusals) {
  std::string known;
  for (const ProjectionEntry& entry : projection_table(spec.type)) {
    known += known.empty() ? "" : ", ";
    known += entry.name;
    if (!spec.implementation.empty()) {
      if (spec.implementation == entry.name) return entry;
      continue;
    }
    const std::string reason = entry.why_not_preferred(spec);
    if (reason.empty()) return entry;
    *refusals += std::string("; not ") + entry.name + ": " + reason;
  }
  fail(ErrorCode::kInvalidArgument, "matmul implementation is '", spec.implementation, "', expected one of ", known);
}

}  // namespace

struct PlannedMatmul::Impl {
  std::unique_ptr<const Projection> projection;
  std::string refusals;
};

PlannedMatmul::PlannedMatmul(const PlannedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias,
                             const PlannedMatmul* same) {
  require(spec.rows >= 0 && spec.columns >= 0 && spec.depth >= 0, "matmul sizes are ", spec.rows, " x ", spec.columns,
          " x ", spec.depth, ", expected none below 0");
  require(spec.type == DataType::kF32 || spec.type == DataType::kBF16, "matmul type is ", type_name(spec.type),
          ", expected f32 or bf16");
  require(weight.type == spec.type, "weight is ", type_name(weight.type), ", expected ", type_name(spec.type));
  require(weight.dims == Dims{spec.columns, spec.depth}, "weight has dims ", weight.dims, ", expected ",
          Dims{spec.columns, spec.depth});
  require(spec.x_stride >= spec.depth, "x_stride is ", spec.x_stride, ", expected at least depth = ", spec.depth);
  require(spec.y_stride >= spec.columns, "y_stride is ", spec.y_stride, ", expected at least columns = ", spec.columns);
  std::vector<float> dense_bias;
  if (bias) {
    require(bias.type == spec.type, "bias is ", type_name(bias.type), ", expected ", type_name(spec.type));
    require(bias.dims == Dims{spec.columns}, "bias has dims ", bias.dims, ", expected ", Dims{spec.columns});
    dense_bias.resize(static_cast<std::size_t>(spec.columns));
    if (spec.type == DataType::kF32) {
      copy_elements(bias, view_of(dense_bias.data(), Dims{spec.columns}));
    } else {
      const BFloat16* from = bias.as<BFloat16>();
      for (std::size_t i = 0; i < dense_bias.size(); ++i) {
        dense_bias[i] = widen(from[static_cast<std::int64_t>(i) * bias.strides[0]]);
      }
    }
  }
  auto impl = std::make_unique<Impl>();
  const ProjectionEntry& entry = choose(spec, &impl->refusals);
  impl->projection = entry.create(
      {spec, weight, bias ? dense_bias.data() : nullptr, same != nullptr ? same->impl_->projection.get() : nullptr});
  impl_ = std::move(impl);
}

PlannedMatmul::~PlannedMatmul() = default;
PlannedMatmul::PlannedMatmul(PlannedMatmul&&) noexcept = default;

std::string PlannedMatmul::explain() const { return impl_->projection->explain() + impl_->refusals; }

std::size_t PlannedMatmul::workspace_bytes(int workers) const { return impl_->projection->workspace_bytes(workers); }

std::int64_t PlannedMatmul::tasks() const { return impl_->projection->tasks(); }

void PlannedMatmul::run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const {
  impl_->projection->run_task(task, worker, x, y, workspace);
}

Work PlannedMatmul::task_work(std::int64_t task) const { return impl_->projection->task_work(task); }

MatmulTile PlannedMatmul::task_tile(std::int64_t task) const { return impl_->projection->task_tile(task); }

void PlannedMatmul::run(const void* x, void* y, std::byte* workspace, const Threads& threads, Profiler* profiler,
                        const Zone& zone) const {
  threads.parallel_for(tasks(), [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, zone);
    run_task(task, worker, x, y, workspace);
    if (profiler) scope.add(task_work(task));
  });
}

}  // namespace headway
