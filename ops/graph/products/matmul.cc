// The MatMul operator with numpy's rules for any rank and type. Decides how ranks are promoted and which types go
// through f32; the product is product.h's.
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/products/plain_product.h"
#include "ops/graph/products/product.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::initializer_list<DataType> kTypes = {DataType::kF32,  DataType::kF64, DataType::kF16,
                                                    DataType::kBF16, DataType::kI32, DataType::kI64};

Dims batch_of(const Dims& dims, int rank) {
  Dims batch;
  for (int i = dims.rank(); i < rank; ++i) batch.push_back(1);
  for (int i = 0; i < dims.rank() - 2; ++i) batch.push_back(dims[i]);
  return batch;
}

ProductSpec product_of(const NodeContext& node) {
  Dims a = node.inputs[0].dims;
  Dims b = node.inputs[1].dims;
  if (a.rank() == 1) a = {1, a[0]};
  if (b.rank() == 1) b = {b[0], 1};
  const int rank = std::max(a.rank(), b.rank());
  ProductSpec product;
  product.a_batch = batch_of(a, rank);
  product.b_batch = batch_of(b, rank);
  product.m = a[a.rank() - 2];
  product.k = a.back();
  product.n = b.back();
  for (int i = 0; i < rank - 2; ++i) {
    product.batch.push_back(product.a_batch[i] == 1 ? product.b_batch[i] : product.a_batch[i]);
  }
  return product;
}

class F32Plan final : public NodePlan {
 public:
  F32Plan(const ProductSpec& spec, const ConstTensorView& known_b) : product_(make_product(spec, known_b)) {}
  std::size_t workspace_bytes(int workers) const override { return product_->workspace_bytes(workers); }
  std::string explain() const override { return product_->explain(); }
  InputUse use(std::size_t input) const override {
    return input == 1 && product_->packs_b() ? InputUse::kNothing : InputUse::kElements;
  }
  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    product_->run({inputs[0].as<float>(), inputs[1].as<float>(), outputs[0].as<float>(), context.workspace,
                   context.threads, context.profiler});
  }

 private:
  std::unique_ptr<const Product> product_;
};

std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// f16 and bf16: both operands as f32, and the result rounded once.
class HalfPlan final : public NodePlan {
 public:
  HalfPlan(const ProductSpec& spec, const NodeContext& node, const Infos& outputs)
      : product_(make_product(spec)),
        count_{element_count(node.inputs[0].dims), element_count(node.inputs[1].dims), element_count(outputs[0].dims)} {
    for (const std::int64_t n : count_) loops_.emplace_back(BroadcastLoop({n}, {Dims{n}}));
  }

  std::size_t workspace_bytes(int workers) const override {
    return bytes_of(0) + bytes_of(1) + bytes_of(2) + product_->workspace_bytes(workers);
  }
  std::string explain() const override { return product_->explain() + ", through f32"; }

  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    if (inputs[0].type == DataType::kF16) return run_typed<Float16>(context, inputs, outputs);
    run_typed<BFloat16>(context, inputs, outputs);
  }

 private:
  std::size_t bytes_of(std::size_t i) const { return round_up(static_cast<std::size_t>(count_[i]) * sizeof(float)); }

  template <class T>
  void run_typed(const RunContext& context, Inputs inputs, Outputs outputs) const {
    float* const floats[] = {reinterpret_cast<float*>(context.workspace),
                             reinterpret_cast<float*>(context.workspace + bytes_of(0)),
                             reinterpret_cast<float*>(context.workspace + bytes_of(0) + bytes_of(1))};
    for (const std::size_t i : {0, 1}) {
      const T* from = inputs[i].as<T>();
      loops_[i].run(context.threads, [&](const BroadcastLoop::Piece& piece) {
        for (std::int64_t j = piece.out; j < piece.out + piece.n; ++j) floats[i][j] = widen(from[j]);
      });
    }
    product_->run({floats[0], floats[1], floats[2], context.workspace + bytes_of(0) + bytes_of(1) + bytes_of(2),
                   context.threads, context.profiler});
    T* to = outputs[0].as<T>();
    loops_[2].run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      for (std::int64_t j = piece.out; j < piece.out + piece.n; ++j) to[j] = convert<T>(floats[2][j]);
    });
  }

  std::unique_ptr<const Product> product_;
  std::int64_t count_[3];
  std::vector<BroadcastLoop> loops_;
};

/// Small products of halves are not worth converting, and summed in order they round as those that expected data comes
/// from.
bool is_large(const ProductSpec& s) {
  constexpr double kLarge = 1 << 20;
  return static_cast<double>(element_count(s.batch)) * static_cast<double>(s.m) * static_cast<double>(s.n) *
             static_cast<double>(s.k) >
         kLarge;
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext& node, const Infos& outputs) {
  const ProductSpec spec = product_of(node);
  switch (outputs[0].type) {
    case DataType::kF32: {
      ConstTensorView b = node.constants.size() > 1 ? node.constants[1] : ConstTensorView();
      if (b && can_pack(spec)) b = b.reshaped({spec.k, spec.n});
      return std::make_unique<F32Plan>(spec, b);
    }
    case DataType::kF16:
    case DataType::kBF16:
      if (is_large(spec)) return std::make_unique<HalfPlan>(spec, node, outputs);
      [[fallthrough]];
    default:
      return make_plan([spec](const RunContext& context, Inputs inputs, Outputs results) {
        visit_type(inputs[0].type, [&](auto kind) {
          using T = decltype(kind);
          if constexpr (sizeof(T) >= 2) {
            plain_product(spec, inputs[0].as<T>(), inputs[1].as<T>(), results[0].as<T>(), context.threads);
          }
        });
      });
  }
}

/// After numpy's promotion: a vector is one row on the left and one column on the right, and the axis goes again.
Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 0, kTypes);
  check_same_type(op, node, 0, 1);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  if (!node.inputs[0].dims || !node.inputs[1].dims) return {out};
  DimList a = *node.inputs[0].dims;
  DimList b = *node.inputs[1].dims;
  require(!a.empty() && !b.empty(), op, " inputs have ranks ", a.size(), " and ", b.size(), ", expected 1 or more");
  const bool vector_a = a.size() == 1;
  const bool vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), Dim(1));
  if (vector_b) b.emplace_back(1);
  const Dim& depth = b[b.size() - 2];
  require(may_equal(a.back(), depth), op, " inputs have dims ", *node.inputs[0].dims, " and ", *node.inputs[1].dims,
          ", expected depths ", a.back(), " and ", depth, " to be equal");
  const std::size_t batch = std::max(a.size(), b.size()) - 2;
  DimList dims(batch, Dim(1));
  const auto at = [&](const DimList& list, std::size_t i) {
    const std::size_t missing = batch + 2 - list.size();
    return i < missing ? Dim(1) : list[i - missing];
  };
  for (std::size_t i = 0; i < batch; ++i) {
    const Dim x = at(a, i);
    const Dim y = at(b, i);
    require(may_equal(x, y) || x.is(1) || y.is(1), op, " inputs have dims ", *node.inputs[0].dims, " and ",
            *node.inputs[1].dims, ", expected batches ", x, " and ", y, " to be equal or one of them 1");
    dims[i] = broadcast_dim(node, x, y);
  }
  if (!vector_a) dims.push_back(a[a.size() - 2]);
  if (!vector_b) dims.push_back(b.back());
  out.dims = std::move(dims);
  return {out};
}

}  // namespace

void add_matmul_op(Registry* registry) { registry->add(make_op("MatMul", {.infer = infer, .plan = plan})); }

}  // namespace headway
