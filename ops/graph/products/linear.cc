// The Linear operator: f(x·W + b) with W and b constant and f applied to each tile while it is in the cache. What fused
// graphs use for MatMul, Add and an activation. Decides nothing about tiles.
//   x [.., K], w [K, N], b? [N] → [.., N]; attribute activation: none, relu, gelu, gelu_tanh, tanh, sigmoid
#include <string>
#include <utility>

#include "ops/graph/operators.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/elementwise.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr const char* kOp = "Linear";
constexpr Zone kZoneMatmul{"matmul", "matmul"};

/// Null for none.
UnaryKernel activation_of(const std::string& word) {
  const ElementwiseKernels kernels = elementwise_kernels();
  const std::pair<const char*, UnaryKernel> words[] = {{"none", nullptr},      {"relu", kernels.relu},
                                                       {"gelu", kernels.gelu}, {"gelu_tanh", kernels.gelu_tanh},
                                                       {"tanh", kernels.tanh}, {"sigmoid", kernels.sigmoid}};
  for (const auto& [name, kernel] : words) {
    if (word == name) return kernel;
  }
  fail(ErrorCode::kInvalidArgument, kOp, " activation is \"", word,
       "\", expected none, relu, gelu, gelu_tanh, tanh or sigmoid");
}

class LinearPlan final : public NodePlan {
 public:
  /// `sibling` may be null.
  LinearPlan(const PlannedMatmulSpec& spec, const ConstTensorView& w, const ConstTensorView& b, std::string activation,
             const LinearPlan* sibling)
      : columns_(spec.columns),
        matmul_(spec, w.permuted({1, 0}), b, sibling != nullptr ? &sibling->matmul_ : nullptr),
        word_(std::move(activation)),
        activation_(activation_of(word_)) {}

  std::size_t workspace_bytes(int workers) const override { return matmul_.workspace_bytes(workers); }
  std::string explain() const override {
    return matmul_.explain() + (activation_ != nullptr ? ", then " + word_ + " on each tile" : "");
  }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const float* const x = inputs[0].as<float>();
    float* const y = outputs[0].as<float>();
    context.threads.parallel_for(matmul_.tasks(), [&](std::int64_t task, int worker) {
      ProfileScope scope(context.profiler, worker, kZoneMatmul);
      matmul_.run_task(task, worker, x, y, context.workspace);
      if (activation_ != nullptr) activate(matmul_.task_tile(task), y);
      if (context.profiler != nullptr) scope.add(matmul_.task_work(task));
    });
  }

 private:
  void activate(const MatmulTile& tile, float* y) const {
    for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
      float* const row = y + r * columns_ + tile.column;
      activation_(row, row, tile.columns);
    }
  }

  std::int64_t columns_;
  PlannedMatmul matmul_;
  std::string word_;
  UnaryKernel activation_;
};

class LinearOp final : public Operator {
 public:
  std::string_view name() const override { return kOp; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    check_inputs(kOp, node, 2, 3);
    check_outputs(kOp, node, 1);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].present) check_f32(kOp, node, i);
    }
    activation_of(node.attributes.text("activation", "none"));
    ValueInfo out = like(node.inputs[0]);
    const auto& w = node.inputs[1].dims;
    if (w) require(w->size() == 2, kOp, " w has rank ", w->size(), ", expected 2");
    if (!out.dims || !w) return {{.type = out.type, .dims = {}, .elements = {}}};
    require(!out.dims->empty() && may_equal(out.dims->back(), (*w)[0]), kOp, " x has dims ", *out.dims,
            ", expected a last dim of ", (*w)[0]);
    if (has_input(node, 2) && node.inputs[2].dims) {
      const DimList expected{(*w)[1]};
      require(may_equal(*node.inputs[2].dims, expected), kOp, " b has dims ", *node.inputs[2].dims, ", expected ",
              expected);
    }
    out.dims->back() = (*w)[1];
    return {out};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    const Dims& x = node.inputs[0].dims;
    const Dims& w = node.inputs[1].dims;
    require(node.constants[1].present, kOp, " w is computed at run time, expected a constant");
    const bool with_bias = node.inputs.size() > 2 && node.inputs[2].present;
    require(!with_bias || node.constants[2].present, kOp, " b is computed at run time, expected a constant");
    std::int64_t rows = 1;
    for (int i = 0; i + 1 < x.rank(); ++i) rows *= x[i];
    PlannedMatmulSpec spec;
    spec.rows = rows;
    spec.columns = w[1];
    spec.depth = w[0];
    spec.x_stride = w[0];
    spec.y_stride = w[1];
    return std::make_unique<LinearPlan>(spec, node.constants[1], with_bias ? node.constants[2] : ConstTensorView(),
                                        node.attributes.text("activation", "none"),
                                        sharing_plan<LinearPlan>(node, {1, 2}));
  }
};

}  // namespace

std::unique_ptr<Operator> make_linear_op() { return std::make_unique<LinearOp>(); }

}  // namespace headway
