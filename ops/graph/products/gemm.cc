// Gemm: alpha·A'·B' + beta·C. Where B is known its factor goes into the packed weights, and a C that is known and the
// same for all rows becomes their bias; else both are applied to the product.
#include <utility>

#include "ops/base/parallel_copy.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/products/plain_product.h"
#include "ops/graph/products/product.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

struct GemmSpec {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 1;
  bool with_c = false;
  ProductSpec product() const { return {.m = m, .n = n, .k = k, .transpose_b = transpose_b}; }
};

GemmSpec spec_of(const NodeContext& node) {
  const Dims& a = node.inputs[0].dims;
  const Dims& b = node.inputs[1].dims;
  GemmSpec s;
  s.transpose_a = node.attributes.integer("transA", 0) != 0;
  s.transpose_b = node.attributes.integer("transB", 0) != 0;
  s.alpha = node.attributes.real("alpha", 1);
  s.beta = node.attributes.real("beta", 1);
  s.m = a[s.transpose_a ? 1 : 0];
  s.k = a[s.transpose_a ? 0 : 1];
  s.n = b[s.transpose_b ? 0 : 1];
  s.with_c = has_input(node, 2);
  return s;
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 3);
  check_type(op, node, 0,
             {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16, DataType::kI32, DataType::kI64});
  check_same_type(op, node, 0, 1);
  if (has_input(node, 2)) check_same_type(op, node, 0, 2);
  const bool transpose_a = node.attributes.integer("transA", 0) != 0;
  const bool transpose_b = node.attributes.integer("transB", 0) != 0;
  for (const char* const factor : {"alpha", "beta"}) node.attributes.real(factor, 1);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  if (!node.inputs[0].dims || !node.inputs[1].dims) return {out};
  const DimList& a = *node.inputs[0].dims;
  const DimList& b = *node.inputs[1].dims;
  require(a.size() == 2 && b.size() == 2, op, " inputs have ranks ", a.size(), " and ", b.size(), ", expected 2");
  const Dim& left = a[transpose_a ? 0 : 1];
  const Dim& right = b[transpose_b ? 1 : 0];
  require(may_equal(left, right), op, " inputs have dims ", a, " and ", b, ", expected depths ", left, " and ", right,
          " to be equal");
  out.dims = DimList{a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]};
  if (has_input(node, 2) && node.inputs[2].dims) {
    broadcast(op, node, out.dims, node.inputs[2].dims);
    require(may_broadcast_to(*node.inputs[2].dims, *out.dims), op, " input 2 has dims ", *node.inputs[2].dims,
            ", expected to broadcast to ", *out.dims);
  }
  return {out};
}

/// y = alpha·y + beta·c, where c may be absent.
class Epilogue {
 public:
  Epilogue(const GemmSpec& s, const NodeContext& node)
      : alpha_(s.alpha), beta_(s.beta), loop_({s.m, s.n}, {s.with_c ? node.inputs[2].dims : Dims{}}) {}

  template <class T>
  void apply(T* y, const ConstTensorView& c, const Threads& threads) const {
    if (alpha_ == 1 && !c) return;
    const T* more = c ? c.as<T>() : nullptr;
    loop_.run(threads, [&](const BroadcastLoop::Piece& piece) {
      for (std::int64_t i = 0; i < piece.n; ++i) {
        T& value = y[piece.out + i];
        const T added = more != nullptr ? more[piece.operand[0] + i * loop_.step(0)] : T{};
        value = combined(value, added);
      }
    });
  }

 private:
  /// Integers are added as they are, and scaled in f64 only where there is something to scale.
  template <class T>
  T combined(T x, T c) const {
    if constexpr (std::is_integral_v<T>) {
      const T scaled = alpha_ == 1 ? x : convert<T>(static_cast<double>(alpha_) * static_cast<double>(x));
      const T more = beta_ == 1 ? c : convert<T>(static_cast<double>(beta_) * static_cast<double>(c));
      return static_cast<T>(static_cast<std::uint64_t>(scaled) + static_cast<std::uint64_t>(more));
    } else {
      using C = ComputeType<T>;
      return convert<T>(static_cast<C>(alpha_) * widen(x) + static_cast<C>(beta_) * widen(c));
    }
  }

  float alpha_, beta_;
  BroadcastLoop loop_;
};

ConstTensorView known(const NodeContext& node, std::size_t i) {
  return i < node.constants.size() ? node.constants[i] : ConstTensorView();
}

Tensor scaled(const ConstTensorView& from, float factor) {
  Tensor result(DataType::kF32, from.dims);
  copy_elements(from, result.view());
  for (std::int64_t i = 0; i < result.count(); ++i) result.data<float>()[i] *= factor;
  return result;
}

class F32Plan final : public NodePlan {
 public:
  F32Plan(const GemmSpec& s, const NodeContext& node) : s_(s), epilogue_(s, node) {
    ConstTensorView b = known(node, 1);
    if (!b) {
      product_ = make_product(s.product());
      return;
    }
    if (s.transpose_b) b = b.permuted({1, 0});
    const ConstTensorView c = known(node, 2);
    const bool as_bias = s.with_c && c && (c.count() == 1 || (c.count() == s.n && c.dims.back() == s.n));
    Tensor bias;
    if (as_bias) bias = scaled(c.reshaped(c.count() == 1 ? Dims{} : Dims{s.n}).broadcast_to({s.n}), s.beta);
    Tensor weights;
    if (s.alpha != 1) weights = scaled(b, s.alpha);
    product_ = make_product(s.product(), s.alpha != 1 ? std::as_const(weights).view() : b,
                            as_bias ? std::as_const(bias).view() : ConstTensorView());
    GemmSpec left = s;
    left.alpha = 1;
    epilogue_ = Epilogue(left, node);
    s_.with_c = s.with_c && !as_bias;
    s_.alpha = 1;
  }

  std::size_t workspace_bytes(int workers) const override { return a_bytes() + product_->workspace_bytes(workers); }
  std::string explain() const override { return product_->explain() + (s_.transpose_a ? ", A copied" : ""); }

  InputUse use(std::size_t input) const override {
    return input == 1 && product_->packs_b() ? InputUse::kNothing : InputUse::kElements;
  }
  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    const float* a = inputs[0].as<float>();
    if (s_.transpose_a) {
      auto* copied = reinterpret_cast<float*>(context.workspace);
      parallel_copy(inputs[0].permuted({1, 0}), view_of(copied, {s_.m, s_.k}), context.threads);
      a = copied;
    }
    float* y = outputs[0].as<float>();
    product_->run({a, inputs[1].as<float>(), y, context.workspace + a_bytes(), context.threads, context.profiler});
    epilogue_.apply(y, s_.with_c ? inputs[2] : ConstTensorView(), context.threads);
  }

 private:
  std::size_t a_bytes() const {
    return s_.transpose_a ? (static_cast<std::size_t>(s_.m * s_.k) * sizeof(float) + 63) / 64 * 64 : 0;
  }

  GemmSpec s_;
  Epilogue epilogue_;
  std::unique_ptr<const Product> product_;
};

/// Other types by plain loops, A transposed into the workspace.
std::unique_ptr<NodePlan> plain_plan(const GemmSpec& s, const NodeContext& node) {
  const Epilogue epilogue(s, node);
  const std::size_t a_bytes =
      s.transpose_a ? static_cast<std::size_t>(s.m * s.k) * size_bytes(node.inputs[0].type) : std::size_t{0};
  return make_plan(
      [=](const RunContext& context, Inputs inputs, Outputs outputs) {
        visit_type(inputs[0].type, [&](auto kind) {
          using T = decltype(kind);
          if constexpr (sizeof(T) >= 2) {
            const T* a = inputs[0].as<T>();
            if (s.transpose_a) {
              auto* copied = reinterpret_cast<T*>(context.workspace);
              copy_elements(inputs[0].permuted({1, 0}), view_of(copied, {s.m, s.k}));
              a = copied;
            }
            T* y = outputs[0].as<T>();
            plain_product(s.product(), a, inputs[1].as<T>(), y, context.threads);
            epilogue.apply(y, s.with_c ? inputs[2] : ConstTensorView(), context.threads);
          }
        });
      },
      [a_bytes](int) { return a_bytes; });
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext& node, const Infos& outputs) {
  const GemmSpec s = spec_of(node);
  if (outputs[0].type == DataType::kF32) return std::make_unique<F32Plan>(s, node);
  return plain_plan(s, node);
}

}  // namespace

void add_gemm_op(Registry* registry) { registry->add(make_op("Gemm", {.infer = infer, .plan = plan})); }

}  // namespace headway
