// RotaryEmbedding, ai.onnx and com.microsoft: pairs of the first r columns of every head are rotated, the rest passes
// through. Inputs of ai.onnx: x [B, N, S, H] or [B, S, N·H], cos, sin, position_ids?; of com.microsoft: x,
// position_ids, cos, sin. cos and sin are [B or 1, S, r/2], or [positions, r/2] read at position_ids. Decides the
// loops; in narrow types every product is rounded, as the function body of the operator has it.
#include <optional>

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

struct Domain {
  const char* name;
  std::size_t cos, sin, positions;
};
constexpr Domain kOnnx{"RotaryEmbedding", 1, 2, 3};
constexpr Domain kMicrosoft{"com.microsoft.RotaryEmbedding", 2, 3, 1};

struct Rotary {
  std::int64_t batch, heads, length, width;
  std::int64_t half = 0;  ///< r / 2
  bool packed_heads = false;
  bool interleaved = false;
  bool has_positions = false;
};

/// Sizes as far as they are known.
struct RotarySizes {
  Dim batch, heads, length, width, half;
};

/// [B, N, S, H] of the input.
RotarySizes heads_of(const Domain& domain, const InferContext& node, const Dim& half) {
  const char* op = domain.name;
  const DimList& x = *node.inputs[0].dims;
  if (x.size() == 4) return {x[0], x[1], x[2], x[3], half};
  std::int64_t given = node.attributes.integer("num_heads", 0);
  RotarySizes r{x[0], Dim(given), x[1], Dim(), half};
  // com.microsoft leaves the heads out when the caches are as wide as a head.
  const bool counted = given == 0 && &domain == &kMicrosoft;
  if (counted && !(x[2].is_number() && half.is_number())) {
    r.heads = node.unknown_size(1);
    r.width = node.unknown_size(3);
    return r;
  }
  if (counted && half.factor > 0 && half.factor <= x[2].factor) given = x[2].factor / (2 * half.factor);
  require(given > 0 && (!x[2].is_number() || x[2].factor % given == 0), op, " num_heads is ", given, " with an input ",
          x[2], " wide, expected a divisor of it");
  const auto width = divided(x[2], Dim(given));
  r.heads = given;
  r.width = width ? *width : node.unknown_size(3);
  return r;
}

void check_positions(const Domain& domain, const InferContext& node, const RotarySizes& r, const DimList& cos) {
  const char* op = domain.name;
  if (!has_input(node, domain.positions)) {
    const Dim batch = cos.size() == 3 ? cos[0] : Dim(1);
    require((batch.is(1) || may_equal(batch, r.batch)) && may_equal(cos[cos.size() - 2], r.length), op,
            " cos_cache has dims ", cos, ", expected ", DimList{r.batch, r.length, r.half}, " or batch 1");
    return;
  }
  const ValueInfo& positions = node.inputs[domain.positions];
  const DataType type = positions.type.value_or(DataType::kI64);
  require(type == DataType::kI64 || type == DataType::kI32, op, " position_ids is ", type_name(type), ", expected i64");
  require(cos.size() == 2, op, " cos_cache has rank ", cos.size(), ", expected 2 with position_ids");
  if (!positions.dims) return;
  const DimList& dims = *positions.dims;
  const bool offset = &domain == &kMicrosoft && may_equal(dims, DimList{1});
  const bool one_row = may_equal(dims, DimList{1, r.length});
  require(offset || one_row || may_equal(dims, DimList{r.batch, r.length}), op, " position_ids has dims ", dims,
          ", expected ", DimList{r.batch, r.length});
}

/// nullopt where a rank is not known.
std::optional<RotarySizes> sizes_of(const Domain& domain, const InferContext& node) {
  const char* op = domain.name;
  check_inputs(op, node, 3, 4);
  check_type(op, node, 0, kFloatTypes);
  require(has_input(node, domain.sin), op, " sin_cache is missing");
  for (const std::size_t i : {domain.cos, domain.sin}) {
    const DataType type = node.inputs[0].type.value_or(DataType::kF32);
    const DataType given = node.inputs[i].type.value_or(type);
    require(given == type, op, " cache is ", type_name(given), ", expected ", type_name(type));
  }
  const std::int64_t columns = node.attributes.integer("rotary_embedding_dim", 0);
  node.attributes.integer("interleaved", 0);
  require(&domain == &kOnnx ||
              (node.attributes.real("scale", 1) == 1 && node.attributes.integer("is_packed_batching", 0) == 0),
          op, " with a scale or packed batching is not supported");
  const auto& x = node.inputs[0].dims;
  const auto& cos = node.inputs[domain.cos].dims;
  const auto& sin = node.inputs[domain.sin].dims;
  if (!x || !cos || !sin) return std::nullopt;
  require(x->size() == 3 || x->size() == 4, op, " input has rank ", x->size(), ", expected 3 or 4");
  require(may_equal(*cos, *sin), op, " caches have dims ", *cos, " and ", *sin, ", expected the same");
  require(cos->size() == 2 || cos->size() == 3, op, " cos_cache has rank ", cos->size(), ", expected 2 or 3");
  const RotarySizes r = heads_of(domain, node, cos->back());
  require(columns == 0 || !r.half.is_number() || (columns % 2 == 0 && columns / 2 == r.half.factor), op,
          " rotary_embedding_dim is ", columns, " but cos_cache has ", r.half, " columns, expected half as many");
  require(!r.half.is_number() || !r.width.is_number() || r.half.factor <= r.width.factor / 2, op, " cos_cache has ",
          r.half, " columns, expected at most half of a head's ", r.width);
  check_positions(domain, node, r, *cos);
  return r;
}

Rotary read(const Domain& domain, const NodeContext& node) {
  const PlannedInputs planned(node);
  const RotarySizes sizes = sizes_of(domain, planned.context()).value();
  Rotary r{};
  r.batch = sizes.batch.factor;
  r.heads = sizes.heads.factor;
  r.length = sizes.length.factor;
  r.width = sizes.width.factor;
  r.half = sizes.half.factor;
  r.packed_heads = node.inputs[0].dims.rank() == 3;
  r.interleaved = node.attributes.integer("interleaved", 0) != 0;
  r.has_positions = has_input(node, domain.positions);
  return r;
}

/// One head of one token. `step` is 1 for pairs a half apart and 2 for neighbours.
template <class T>
void rotate(const Rotary& r, const T* x, const T* cos, const T* sin, T* out) {
  using C = ComputeType<T>;
  const std::int64_t step = r.interleaved ? 2 : 1;
  const std::int64_t apart = r.interleaved ? 1 : r.half;
  const auto product = [](T a, T b) { return C(widen(convert<T>(static_cast<C>(widen(a) * widen(b))))); };
  for (std::int64_t k = 0; k < r.half; ++k) {
    const T first = x[k * step];
    const T second = x[k * step + apart];
    out[k * step] = convert<T>(static_cast<C>(product(cos[k], first) - product(sin[k], second)));
    out[k * step + apart] = convert<T>(static_cast<C>(product(sin[k], first) + product(cos[k], second)));
  }
  for (std::int64_t d = 2 * r.half; d < r.width; ++d) out[d] = x[d];
}

class RotaryPlan : public NodePlan {
 public:
  RotaryPlan(const Domain& domain, const Rotary& r) : domain_(domain), r_(r) {}

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const ConstTensorView positions = r_.has_positions ? inputs[domain_.positions] : ConstTensorView();
    if (positions) check_positions(positions, inputs[domain_.cos].dims[0]);
    visit_type(inputs[0].type, [&](auto one) {
      using T = decltype(one);
      if constexpr (kIsFloat<T>) run_as<T>(context, inputs, positions, outputs[0]);
    });
  }

 private:
  /// Row of the caches for a token.
  std::int64_t position(const ConstTensorView& positions, std::int64_t b, std::int64_t s) const {
    const bool offset = positions.rank() == 1;
    const std::int64_t at = offset ? 0 : (positions.dims[0] == 1 ? 0 : b * r_.length) + s;
    const std::int64_t value =
        positions.type == DataType::kI32 ? positions.as<std::int32_t>()[at] : positions.as<std::int64_t>()[at];
    return offset ? value + s : value;
  }
  void check_positions(const ConstTensorView& positions, std::int64_t rows) const {
    for (std::int64_t b = 0; b < r_.batch; ++b) {
      for (std::int64_t s = 0; s < r_.length; ++s) {
        const std::int64_t p = position(positions, b, s);
        require(p >= 0 && p < rows, domain_.name, " position_ids holds ", p, ", expected 0 to ", rows - 1);
      }
    }
  }

  template <class T>
  void run_as(const RunContext& context, std::span<const ConstTensorView> inputs, const ConstTensorView& positions,
              const TensorView& out) const {
    const ConstTensorView& cos = inputs[domain_.cos];
    const bool one_batch = cos.rank() == 2 || cos.dims[0] == 1;
    const T* const cos_data = cos.as<T>();
    const T* const sin_data = inputs[domain_.sin].template as<T>();
    const T* const x = inputs[0].template as<T>();
    T* const to = out.as<T>();
    context.threads.parallel_for(r_.batch * r_.length, [&](std::int64_t task, int) {
      const std::int64_t b = task / r_.length;
      const std::int64_t s = task % r_.length;
      const std::int64_t row = positions ? position(positions, b, s) : (one_batch ? 0 : b * r_.length) + s;
      for (std::int64_t h = 0; h < r_.heads; ++h) {
        const std::int64_t token =
            r_.packed_heads ? (b * r_.length + s) * r_.heads + h : (b * r_.heads + h) * r_.length + s;
        rotate(r_, x + token * r_.width, cos_data + row * r_.half, sin_data + row * r_.half, to + token * r_.width);
      }
    });
  }

  const Domain& domain_;
  Rotary r_;
};

class RotaryEmbeddingOp : public Operator {
 public:
  explicit RotaryEmbeddingOp(const Domain& domain) : domain_(domain) {}
  std::string_view name() const override { return domain_.name; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    sizes_of(domain_, node);
    check_outputs(domain_.name, node, 1);
    return {like(node.inputs[0])};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<RotaryPlan>(domain_, read(domain_, node));
  }

 private:
  const Domain& domain_;
};

}  // namespace

std::unique_ptr<Operator> make_rotary_embedding_op() { return std::make_unique<RotaryEmbeddingOp>(kOnnx); }
std::unique_ptr<Operator> make_microsoft_rotary_embedding_op() {
  return std::make_unique<RotaryEmbeddingOp>(kMicrosoft);
}

}  // namespace headway
