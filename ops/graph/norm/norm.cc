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
  DataType type = DataType::kF32;      // of the rows
  DataType out_type = DataType::kF32;  // of scale, bias and the output

  bool is_broadcast() const { return scale == Affine::kBroadcast || bias == Affine::kBroadcast; }
  bool is_double() const { return type == DataType::kF64; }
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
  spec.out_type = node.inputs[1].type;
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
  std::size_t row_bytes;       // of one row in the type it is computed in, rounded up to a line
  std::size_t wide_bytes = 0;  // of the whole output, where it is narrow and scale or bias stretch over rows

  explicit Memory(const NormSpec& spec) {
    const std::size_t element = spec.is_double() ? sizeof(double) : sizeof(float);
    row_bytes = line(static_cast<std::size_t>(spec.length) * element);
    const bool narrow = spec.out_type == DataType::kF16 || spec.out_type == DataType::kBF16;
    if (narrow && spec.is_broadcast()) wide_bytes = row_bytes * static_cast<std::size_t>(spec.rows);
  }
  // The wide output, scale, bias, then a row per worker: what halves are converted to.
  std::size_t bytes(int workers) const { return wide_bytes + row_bytes * static_cast<std::size_t>(workers + 2); }
  static std::size_t line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
};

/// V's own memory when V is computed as it is, else a converted copy.
template <class V, class C>
const C* in_compute_type(const ConstTensorView& view, Affine kind, std::int64_t n, std::byte* scratch) {
  if (kind != Affine::kRow) return nullptr;
  if constexpr (std::is_same_v<V, C>) {
    return view.as<V>();
  } else {
    auto* copied = reinterpret_cast<C*>(scratch);
    for (std::int64_t i = 0; i < n; ++i) copied[i] = widen(view.as<V>()[i]);
    return copied;
  }
}

/// What stretches over the rows otherwise is applied to the whole output, before that is rounded to its type.
template <class V, class C, class F>
void apply(const BroadcastLoop& loop, const ConstTensorView& operand, C* out, const Threads& threads, F f) {
  const V* b = operand.as<V>();
  loop.run(threads, [&](const BroadcastLoop::Piece& piece) {
    for (std::int64_t i = 0; i < piece.n; ++i) {
      C& value = out[piece.out + i];
      value = f(value, static_cast<C>(widen(b[piece.operand[0] + i * loop.step(0)])));
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
    if (spec_.is_double()) return run_typed<double, double, double>(context, inputs, outputs);
    visit_type(spec_.type, [&](auto rows) {
      visit_type(spec_.out_type, [&](auto result) {
        using T = decltype(rows);
        using V = decltype(result);
        constexpr bool kWide = std::is_same_v<T, double> || std::is_same_v<V, double>;
        if constexpr (kIsFloat<T> && kIsFloat<V> && !kWide) run_typed<T, V, float>(context, inputs, outputs);
      });
    });
  }

 private:
  static BroadcastLoop loop_for(const NodeContext& node, std::size_t input, Affine affine) {
    if (affine != Affine::kBroadcast) return BroadcastLoop({0}, {});
    return BroadcastLoop(node.inputs[0].dims, {node.inputs[input].dims});
  }

  /// Rows of T computed in C, scale, bias and output of V. Nothing is rounded to V before the end.
  template <class T, class V, class C>
  void run_typed(const RunContext& context, Inputs inputs, Outputs outputs) const {
    const std::int64_t n = spec_.length;
    if (n == 0 || spec_.rows == 0) return;
    std::byte* const rows = context.workspace + memory_.wide_bytes;
    const C* scale = in_compute_type<V, C>(inputs[1], spec_.scale, n, rows);
    const C* bias = in_compute_type<V, C>(optional_input(inputs, 2), spec_.bias, n, rows + memory_.row_bytes);
    // The whole result in C, or null where a row at a time is rounded.
    C* whole = reinterpret_cast<C*>(context.workspace);
    if constexpr (std::is_same_v<V, C>) {
      whole = outputs[0].as<C>();
    } else if (memory_.wide_bytes == 0) {
      whole = nullptr;
    }
    const MomentOutputs moments = moments_of(outputs);
    const std::int64_t block = std::max<std::int64_t>(1, 8192 / n);
    context.threads.parallel_for((spec_.rows + block - 1) / block, [&](std::int64_t task, int worker) {
      auto* scratch = reinterpret_cast<C*>(rows + memory_.row_bytes * static_cast<std::size_t>(worker + 2));
      for (std::int64_t r = task * block; r < std::min(spec_.rows, (task + 1) * block); ++r) {
        const T* given = inputs[0].as<T>() + r * n;
        C* const y = whole != nullptr ? whole + r * n : scratch;
        const C* x = y;
        if constexpr (std::is_same_v<T, C>) {
          x = given;
        } else {
          for (std::int64_t i = 0; i < n; ++i) y[i] = widen(given[i]);
        }
        const Moments<C> m = kind_(NormArgs<C>{x, y, scale, bias, n});
        if (whole == nullptr) round_to<V>(y, outputs[0].as<V>() + r * n, n);
        if (moments.mean) store(moments.mean, r, static_cast<double>(m.mean));
        if (moments.inverse_std) store(moments.inverse_std, r, static_cast<double>(m.inverse_std));
      }
    });
    if (!spec_.is_broadcast()) return;
    if (spec_.scale == Affine::kBroadcast) apply<V>(scale_loop_, inputs[1], whole, context.threads, arithmetic::Mul());
    if (spec_.bias == Affine::kBroadcast) apply<V>(bias_loop_, inputs[2], whole, context.threads, arithmetic::Add());
    if (memory_.wide_bytes != 0) round_to<V>(whole, outputs[0].as<V>(), spec_.rows * n);
  }

  template <class V, class C>
  static void round_to(const C* from, V* to, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<V>(from[i]);
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

/// ONNX Runtime's own operator, whose scale may have another type than the rows; its output has that type.
bool takes_other_scale(std::string_view op) { return op.ends_with("SimplifiedLayerNormalization"); }

void check_affine(const char* op, const InferContext& node, std::size_t input) {
  if (!has_input(node, input)) return;
  if (input == 1 && takes_other_scale(op)) {
    check_type(op, node, input, kFloatTypes);
    const auto& x = node.inputs[0].type;
    const auto& scale = node.inputs[1].type;
    if (x == DataType::kF64 || scale == DataType::kF64) check_same_type(op, node, 0, input);
  } else {
    check_same_type(op, node, 0, input);
  }
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
  if (takes_other_scale(op)) outputs[0].type = node.inputs[1].type;
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
