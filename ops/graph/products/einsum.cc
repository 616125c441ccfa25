// Einsum. Two f32 operands with no label of one operand summed alone become a batch of matrix products, each operand
// copied once where its strides do not allow it as it lies; everything else is plain_einsum.h.
#include <map>
#include <memory>
#include <utility>

#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/products/einsum_equation.h"
#include "ops/graph/products/plain_einsum.h"
#include "ops/graph/products/product.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

EinsumEquation equation_of(const char* op, const NodeContext& node) {
  std::vector<Dims> dims;
  std::vector<std::size_t> ranks;
  for (const TensorInfo& input : node.inputs) {
    dims.push_back(input.dims);
    ranks.push_back(static_cast<std::size_t>(input.dims.rank()));
  }
  return einsum_equation(parse_einsum(op, node.attributes.text("equation", ""), ranks), dims);
}

/// Dims and strides of one tensor in the order of a product's axes.
struct Layout {
  Dims dims, strides;
  void add(std::int64_t size, std::int64_t stride) {
    dims.push_back(size);
    strides.push_back(stride);
  }
  template <class Byte>
  BasicTensorView<Byte> of(Byte* data) const {
    return {data, DataType::kF32, dims, strides};
  }
  bool is_contiguous() const { return ConstTensorView(nullptr, DataType::kF32, dims, strides).is_contiguous(); }
};

/// The equation as a[batch, M, K]·b[batch, K, N]; `possible` is false when it is none.
struct AsProduct {
  bool possible = false;
  ProductSpec spec;
  Layout a, b, b_transposed, c;
};

AsProduct as_product(const EinsumEquation& equation, DataType type, std::size_t operands) {
  AsProduct p;
  if (operands != 2 || type != DataType::kF32 || equation.labels.size() > kMaxRank) return p;
  std::vector<const EinsumLabel*> batch, rows, columns, depth;
  for (const EinsumLabel& label : equation.labels) {
    const bool both = label.present[0] && label.present[1];
    if (!both && !label.in_result) return p;
    (both ? (label.in_result ? batch : depth) : label.present[0] ? rows : columns).push_back(&label);
  }
  std::int64_t entries = 1;
  const auto add = [](const std::vector<const EinsumLabel*>& labels, std::size_t operand, Layout* to) {
    std::int64_t count = 1;
    for (const EinsumLabel* label : labels) {
      to->add(label->size, operand == 2 ? label->result_stride : label->strides[operand]);
      count *= label->size;
    }
    return count;
  };
  for (Layout* layout : {&p.a, &p.b, &p.b_transposed, &p.c}) {
    entries = add(batch, layout == &p.a ? 0 : layout == &p.c ? 2 : 1, layout);
  }
  p.spec.m = add(rows, 0, &p.a);
  p.spec.k = add(depth, 0, &p.a);
  add(depth, 1, &p.b);
  p.spec.n = add(columns, 1, &p.b);
  add(columns, 1, &p.b_transposed);
  add(depth, 1, &p.b_transposed);
  add(rows, 2, &p.c);
  add(columns, 2, &p.c);
  p.spec.batch = p.spec.a_batch = p.spec.b_batch = {entries};
  p.spec.transpose_b = !p.b.is_contiguous() && p.b_transposed.is_contiguous();
  p.possible = true;
  return p;
}

class ProductPlan final : public NodePlan {
 public:
  ProductPlan(AsProduct p, const ConstTensorView& known_b) : p_(std::move(p)) {
    Tensor b;
    if (known_b && can_pack(p_.spec)) {
      b = Tensor(DataType::kF32, p_.b.dims);
      copy_elements(p_.b.of(known_b.data), b.view());
      product_ = make_product(p_.spec, std::as_const(b).view().reshaped({p_.spec.k, p_.spec.n}));
      copies_b_ = false;
    } else {
      product_ = make_product(p_.spec);
      copies_b_ = !p_.spec.transpose_b && !p_.b.is_contiguous();
    }
  }

  std::size_t workspace_bytes(int workers) const override {
    return bytes(p_.a, copies_a_) + bytes(p_.b, copies_b_) + bytes(p_.c, copies_c_) +
           product_->workspace_bytes(workers);
  }
  std::string explain() const override { return product_->explain(); }

  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    std::byte* next = context.workspace;
    const auto packed = [&](const Layout& layout, bool copies, const ConstTensorView& input) {
      if (!copies) return input.as<float>();
      auto* to = reinterpret_cast<float*>(next);
      next += bytes(layout, true);
      parallel_copy(layout.of(input.data), view_of(to, layout.dims), context.threads);
      return static_cast<const float*>(to);
    };
    const float* a = packed(p_.a, copies_a_, inputs[0]);
    const float* b = packed(p_.b, copies_b_, inputs[1]);
    auto* c = copies_c_ ? reinterpret_cast<float*>(next) : outputs[0].as<float>();
    next += bytes(p_.c, copies_c_);
    product_->run({a, b, c, next, context.threads, context.profiler});
    if (copies_c_) {
      parallel_copy(ConstTensorView(view_of(c, p_.c.dims)), p_.c.of(outputs[0].data), context.threads);
    }
  }

 private:
  static std::size_t bytes(const Layout& layout, bool copies) {
    return copies ? (tensor_bytes(DataType::kF32, layout.dims) + 63) / 64 * 64 : 0;
  }

  AsProduct p_;
  bool copies_a_ = !p_.a.is_contiguous();
  bool copies_b_ = false;
  bool copies_c_ = !p_.c.is_contiguous();
  std::unique_ptr<const Product> product_;
};

constexpr std::size_t kMaxOperands = 8;

Inferred infer(const char* op, const InferContext& node) {
  require(!node.inputs.empty(), op, " has 0 inputs, expected 1 or more");
  require(node.inputs.size() <= kMaxOperands, op, " has ", node.inputs.size(), " inputs, at most ", kMaxOperands,
          " are supported");
  check_inputs(op, node, node.inputs.size(), node.inputs.size());
  check_type(op, node, 0, kNumericTypes);
  const std::string equation = node.attributes.text("equation", "");
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    check_same_type(op, node, 0, i);
    if (node.inputs[i].dims) ranks.push_back(node.inputs[i].dims->size());
  }
  if (ranks.size() != node.inputs.size()) return {out};
  const EinsumNames names = parse_einsum(op, equation, ranks);
  std::map<int, Dim> sizes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t a = 0; a < ranks[i]; ++a) {
      const int name = names.operands[i][a];
      const Dim& given = (*node.inputs[i].dims)[a];
      Dim& size = sizes.try_emplace(name, given).first->second;
      const bool broadcasts = EinsumNames::broadcasts(name);
      require(may_equal(given, size) || (broadcasts && (given.is(1) || size.is(1))), op, " input ", i, " axis ", a,
              " is ", given, ", expected ", size, " as another axis of the same label");
      if (broadcasts) {
        size = broadcast_dim(node, size, given);
      } else if (given.is_number()) {
        size = given;
      }
    }
  }
  out.dims.emplace();
  for (const int name : names.result) out.dims->push_back(sizes.at(name));
  return {out};
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos& outputs) {
  EinsumEquation equation = equation_of(op, node);
  AsProduct product = as_product(equation, outputs[0].type, node.inputs.size());
  if (product.possible) {
    return std::make_unique<ProductPlan>(std::move(product),
                                         node.constants.size() > 1 ? node.constants[1] : ConstTensorView());
  }
  auto plain = std::make_shared<const PlainEinsum>(op, std::move(equation), node.inputs.size());
  return make_plan(
      [plain](const RunContext& context, Inputs inputs, Outputs results) { plain->run(context, inputs, results[0]); },
      [plain](int) { return plain->workspace_bytes(); });
}

}  // namespace

void add_einsum_op(Registry* registry) { registry->add(make_op("Einsum", {.infer = infer, .plan = plan})); }

}  // namespace headway
