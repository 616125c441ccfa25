// Softmax over one axis as a graph operator. Decides where a row is gathered; ops/simd computes it.
#include <algorithm>

#include "ops/operators.h"
#include "ops/simd/softmax.h"

namespace headway {
namespace {

class SoftmaxPlan : public NodePlan {
 public:
  SoftmaxPlan(int axis, std::int64_t length) : axis_(axis), length_(length), kernels_(softmax_kernels()) {}

  /// A row a worker, for rows that are not contiguous in the output.
  std::size_t workspace_bytes(int workers) const override {
    return static_cast<std::size_t>(workers) * row_floats() * sizeof(float);
  }

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const TensorView& out = outputs[0];
    if (out.count() == 0) return;
    const std::int64_t rows = out.count() / length_;
    const std::int64_t rows_a_task = std::max<std::int64_t>(1, 4096 / length_);
    context.threads.parallel_for((rows + rows_a_task - 1) / rows_a_task, [&](std::int64_t task, int worker) {
      float* scratch = reinterpret_cast<float*>(context.workspace) + static_cast<std::size_t>(worker) * row_floats();
      const std::int64_t end = std::min(rows, (task + 1) * rows_a_task);
      for (std::int64_t r = task * rows_a_task; r < end; ++r) run_row(inputs[0], out, r, scratch);
    });
  }

 private:
  std::size_t row_floats() const { return static_cast<std::size_t>((length_ + 15) / 16 * 16); }

  void run_row(const ConstTensorView& x, const TensorView& out, std::int64_t r, float* scratch) const {
    const float* from = x.as<float>();
    float* to = out.as<float>();
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      if (axis == axis_) continue;
      const std::int64_t i = r % x.dims[axis];
      r /= x.dims[axis];
      from += i * x.strides[axis];
      to += i * out.strides[axis];
    }
    const std::int64_t step = x.strides[axis_];
    const std::int64_t out_step = out.strides[axis_];
    float* row = out_step == 1 ? to : scratch;
    for (std::int64_t i = 0; i < length_; ++i) row[i] = from[i * step];
    kernels_.softmax_row(row, length_);
    for (std::int64_t i = 0; row == scratch && i < length_; ++i) to[i * out_step] = row[i];
  }

  int axis_;
  std::int64_t length_;
  SoftmaxKernels kernels_;
};

class SoftmaxOp : public Operator {
 public:
  std::string_view name() const override { return "Softmax"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    check_inputs("Softmax", node, 1, 1);
    check_f32("Softmax", node, 0);
    axis_of(node);
    return {node.inputs[0]};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    const int axis = axis_of(node);
    return std::make_unique<SoftmaxPlan>(axis, node.inputs[0].dims[axis]);
  }

 private:
  static int axis_of(const NodeContext& node) {
    return normalised_axis("Softmax", node.attributes.integer("axis", -1), node.inputs[0].dims.rank());
  }
};

}  // namespace

std::unique_ptr<Operator> make_softmax_op() { return std::make_unique<SoftmaxOp>(); }

}  // namespace headway
