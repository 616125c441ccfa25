// LayerNormalization, RMSNormalization and SimplifiedLayerNormalization: rows of all axes from `axis` on. Decides where
// rows are converted and how scale and bias reach them; ops/simd normalises.
#include <algorithm>

#include "ops/base/numeric.h"
#include "ops/graph/elementwise/arithmetic.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/norm/norm_row.h"
#include "ops/graph/onnx_type.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// How scale or bias is laid over the rows.
enum class Affine { kNone, kRow, kBroadcast };

struct NormSpec {
  bool rms = false;
  int axis = 0;
  std::int64_t rows = 0, length = 0;
  Affine scale = Affine::kNone, bias = Affine::kNone;
  DataType type = DataType::kF32;
};

std::int64_t product(const Dims& dims, int begin, int end) {
  std::int64_t n = 1;
  for (int a = begin; a < end; ++a) n *= dims[a];
  return n;
}

Affine affine_of(const NodeContext& node, std::size_t input, int axis) {
  if (!has_input(node, input)) return Affine::kNone;
  const Dims& x = node.inputs[0].dims;
  const Dims& given = node.inputs[input].dims;
  // The row's own elements, perhaps with unit axes in front.
  const int row_rank = x.rank() - axis;
  bool row = element_count(given) == product(x, axis, x.rank()) && given.rank() >= row_rank;
  for (int a = 1; a <= row_rank && row; ++a) row = given[given.rank() - a] == x[x.rank() - a];
  return row ? Affine::kRow : Affine::kBroadcast;
}

NormSpec spec_of(const char* op, const NodeContext& node, bool rms) {
  const Dims& dims = node.inputs[0].dims;
  NormSpec spec;
  spec.rms = rms;
  spec.axis = normalised_axis(op, node.attributes.integer("axis", -1), static_cast<std::size_t>(dims.rank()));
  spec.rows = product(dims, 0, spec.axis);
  spec.length = product(dims, spec.axis, dims.rank());
  spec.scale = affine_of(node, 1, spec.axis);
  spec.bias = affine_of(node, 2, spec.axis);
  // A bias for the row comes after a scale that is not.
  if (spec.scale == Affine::kBroadcast && spec.bias == Affine::kRow) spec.bias = Affine::kBroadcast;
  spec.type = node.inputs[0].type;
  return spec;
}

/// ONNX's stash_type: what mean and inverse deviation are given in.
DataType stash_type(const char* op, const InferContext& node) {
  const std::int64_t number = node.attributes.integer("stash_type", 1);
  const std::optional<DataType> type = onnx_type(number);
  require(type && is_float(*type), op, " stash_type is ", number,
          ", expected 1 (f32), 10 (f16), 11 (f64) or 16 (bf16)");
  return *type;
}

void store(const TensorView& view, std::int64_t i, double value) {
  visit_type(view.type, [&](auto kind) {
    using T = decltype(kind);
    view.as<T>()[i] = convert<T>(value);
  });
}

struct Memory {
  std::size_t row_bytes;  // of one row in its compute type, rounded up to a line

  explicit Memory(const NormSpec& spec) {
    const std::size_t element = spec.type == DataType::kF64 ? sizeof(double) : sizeof(float);
    row_bytes = (static_cast<std::size_t>(spec.length) * element + 63) / 64 * 64;
  }
  // Scale, bias, then a row a worker: what halves are converted to.
  std::size_t bytes(int workers) const { return row_bytes * static_cast<std::size_t>(workers + 2); }
};

/// T's own memory when T is computed as it is, else a converted copy.
template <class T, class C = ComputeType<T>>
const C* in_compute_type(const ConstTensorView& view, Affine kind, std::int64_t n, std::byte* scratch) {
  if (kind != Affine::kRow) return nullptr;
  if constexpr (std::is_same_v<T, C>) {
    return view.as<T>();
  } else {
    auto* copied = reinterpret_cast<C*>(scratch);
    for (std::int64_t i = 0; i < n; ++i) copied[i] = widen(view.as<T>()[i]);
    return copied;
  }
}

/// What stretches over the rows otherwise is applied to the whole output.
template <class T, class F>
void apply(const BroadcastLoop& loop, const ConstTensorView& operand, const TensorView& y, const Threads& threads,
           F f) {
  const T* b = operand.as<T>();
  T* out = y.as<T>();
  loop.run(threads, [&](const BroadcastLoop::Piece& piece) {
    for (std::int64_t i = 0; i < piece.n; ++i) {
      T& value = out[piece.out + i];
      value = convert<T>(f(widen(value), widen(b[piece.operand[0] + i * loop.step(0)])));
    }
  });
}

/// Outputs 1 and 2; a null view is not wanted.
struct MomentOutputs {
  TensorView mean, inverse_std;
};

class NormPlan final : public NodePlan {
 public:
  NormPlan(const char* op, const NormSpec& spec, const NodeContext& node)
      : spec_(spec),
        memory_(spec),
        scale_loop_(loop_for(node, 1, spec.scale)),
        bias_loop_(loop_for(node, 2, spec.bias)) {
    kind_.rms = spec.rms;
    kind_.epsilon = node.attributes.real("epsilon", 1e-5f);
    simplified_ = spec.rms && std::string_view(op) != "RMSNormalization";
  }

  std::size_t workspace_bytes(int workers) const override { return memory_.bytes(workers); }

  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    visit_type(spec_.type, [&](auto kind) {
      if constexpr (kIsFloat<decltype(kind)>) run_typed<decltype(kind)>(context, inputs, outputs);
    });
  }

 private:
  static BroadcastLoop loop_for(const NodeContext& node, std::size_t input, Affine affine) {
    if (affine != Affine::kBroadcast) return BroadcastLoop({0}, {});
    return BroadcastLoop(node.inputs[0].dims, {node.inputs[input].dims});
  }

  template <class T>
  void run_typed(const RunContext& context, Inputs inputs, Outputs outputs) const {
    using C = ComputeType<T>;
    const std::int64_t n = spec_.length;
    if (n == 0 || spec_.rows == 0) return;
    const C* scale = in_compute_type<T>(inputs[1], spec_.scale, n, context.workspace);
    const C* bias = in_compute_type<T>(optional_input(inputs, 2), spec_.bias, n, context.workspace + memory_.row_bytes);
    const MomentOutputs moments = moments_of(outputs);
    const std::int64_t block = std::max<std::int64_t>(1, 8192 / n);
    context.threads.parallel_for((spec_.rows + block - 1) / block, [&](std::int64_t task, int worker) {
      auto* scratch =
          reinterpret_cast<C*>(context.workspace + memory_.row_bytes * static_cast<std::size_t>(worker + 2));
      for (std::int64_t r = task * block; r < std::min(spec_.rows, (task + 1) * block); ++r) {
        const T* x = inputs[0].as<T>() + r * n;
        T* y = outputs[0].as<T>() + r * n;
        Moments<C> m;
        if constexpr (std::is_same_v<T, C>) {
          m = kind_(NormArgs<C>{x, y, scale, bias, n});
        } else {
          for (std::int64_t i = 0; i < n; ++i) scratch[i] = widen(x[i]);
          m = kind_(NormArgs<C>{scratch, scratch, scale, bias, n});
          for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(scratch[i]);
        }
        if (moments.mean) store(moments.mean, r, static_cast<double>(m.mean));
        if (moments.inverse_std) store(moments.inverse_std, r, static_cast<double>(m.inverse_std));
      }
    });
    if (spec_.scale == Affine::kBroadcast)
      apply<T>(scale_loop_, inputs[1], outputs[0], context.threads, arithmetic::Mul());
    if (spec_.bias == Affine::kBroadcast)
      apply<T>(bias_loop_, inputs[2], outputs[0], context.threads, arithmetic::Add());
  }

  MomentOutputs moments_of(Outputs outputs) const {
    MomentOutputs moments;
    const std::size_t inverse_std = simplified_ ? 1 : 2;
    if (!simplified_ && outputs.size() > 1) moments.mean = outputs[1];
    if (outputs.size() > inverse_std) moments.inverse_std = outputs[inverse_std];
    return moments;
  }

  NormSpec spec_;
  Memory memory_;
  BroadcastLoop scale_loop_, bias_loop_;
  NormKind kind_;
  bool simplified_ = false;  // its only other output is the inverse deviation
};

void check_affine(const char* op, const InferContext& node, std::size_t input) {
  if (!has_input(node, input)) return;
  check_same_type(op, node, 0, input);
  if (!node.inputs[0].dims || !node.inputs[input].dims) return;
  const DimList& x = *node.inputs[0].dims;
  const DimList& given = *node.inputs[input].dims;
  broadcast(op, node, node.inputs[0].dims, node.inputs[input].dims);
  require(may_broadcast_to(given, x), op, " input ", input, " has dims ", given, ", expected to broadcast to ", x);
}

Inferred infer(const char* op, const InferContext& node, bool rms, int most_outputs) {
  check_inputs(op, node, 2, rms ? 2 : 3);
  check_outputs(op, node, most_outputs);
  check_type(op, node, 0, kFloatTypes);
  for (const std::size_t i : {1, 2}) check_affine(op, node, i);
  const std::int64_t given_axis = node.attributes.integer("axis", -1);
  node.attributes.real("epsilon", 0);
  Inferred outputs{like(node.inputs[0])};
  ValueInfo moments{.type = stash_type(op, node), .dims = node.inputs[0].dims, .elements = {}};
  if (moments.dims) {
    const int axis = normalised_axis(op, given_axis, moments.dims->size());
    std::fill(moments.dims->begin() + axis, moments.dims->end(), Dim(1));
  }
  outputs.resize(static_cast<std::size_t>(node.num_outputs), moments);
  return outputs;
}

OpFunctions norm(bool rms, int most_outputs) {
  return {.infer = [=](const char* op, const InferContext& node) { return infer(op, node, rms, most_outputs); },
          .plan = [=](const char* op, const NodeContext& node, const Infos&) -> std::unique_ptr<NodePlan> {
            return std::make_unique<NormPlan>(op, spec_of(op, node, rms), node);
          }};
}

}  // namespace

void add_norm_ops(Registry* registry) {
  registry->add(make_op("LayerNormalization", norm(false, 3)));
  registry->add(make_op("RMSNormalization", norm(true, 1)));
  registry->add(make_op("SimplifiedLayerNormalization", norm(true, 2)));
  registry->add(make_op("com.microsoft.SimplifiedLayerNormalization", norm(true, 2)));
}

}  // namespace headway
