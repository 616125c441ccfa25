// com.microsoft's SkipLayerNormalization and SkipSimplifiedLayerNormalization in f32, f16 and bf16: the sum of input,
// skip and bias is normalised, and given as a further output where it is wanted. Narrow types are computed in f32 from
// end to end and rounded once; mean and inverse deviation are f32.
#include "ops/base/numeric.h"
#include "ops/graph/norm/norm_row.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

// Inputs: input, skip, gamma, then beta where there is a mean, then bias. Outputs: output, mean, inverse deviation,
// sum.
constexpr std::size_t kSumOutput = 3;

std::size_t bias_input(bool rms) { return rms ? 3 : 4; }

Inferred infer(const char* op, const InferContext& node, bool rms) {
  check_inputs(op, node, 3, bias_input(rms) + 1);
  check_outputs(op, node, static_cast<int>(kSumOutput) + 1);
  node.attributes.real("epsilon", 0);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].present) continue;
    check_type(op, node, i, {DataType::kF32, DataType::kF16, DataType::kBF16});
    check_same_type(op, node, 0, i);
  }
  const ValueInfo& x = node.inputs[0];
  Inferred outputs(static_cast<std::size_t>(node.num_outputs),
                   {.type = DataType::kF32, .dims = x.dims, .elements = {}});
  outputs[0].type = x.type;
  if (outputs.size() > kSumOutput) outputs[kSumOutput].type = x.type;
  if (!x.dims) return outputs;
  require(!x.dims->empty(), op, " input 0 has rank 0, expected 1 or more");
  const Dim width = x.dims->back();
  if (node.inputs[1].dims) {
    // The skip may lack the batch, or have a batch of 1: its elements then repeat.
    const DimList& skip = *node.inputs[1].dims;
    bool fits = !skip.empty() && may_broadcast_to(skip, *x.dims) && may_equal(skip.back(), width);
    for (std::size_t a = 1; a + 1 < skip.size() && fits; ++a) {
      fits = may_equal(skip[a], (*x.dims)[x.dims->size() - skip.size() + a]);
    }
    require(fits, op, " input 1 has dims ", skip, ", expected those of input 0, ", *x.dims,
            ", perhaps without the batch");
  }
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].present || !node.inputs[i].dims) continue;
    require(may_equal(*node.inputs[i].dims, DimList{width}), op, " input ", i, " has dims ", *node.inputs[i].dims,
            ", expected ", DimList{width});
  }
  for (std::size_t i = 1; i < outputs.size() && i < kSumOutput; ++i) outputs[i].dims->back() = 1;
  return outputs;
}

/// A row of each worker, and gamma, beta and bias, in f32; nothing where they are f32 already.
struct Memory {
  std::size_t row_bytes = 0;

  Memory(DataType type, std::int64_t n) {
    if (type != DataType::kF32) row_bytes = (static_cast<std::size_t>(n) * sizeof(float) + 63) / 64 * 64;
  }
  float* row(std::byte* workspace, std::size_t i) const { return reinterpret_cast<float*>(workspace + i * row_bytes); }
  std::size_t bytes(int workers) const { return row_bytes * static_cast<std::size_t>(workers + 3); }
};

/// `view` as f32: its own memory, or a copy in `to`; null where it is absent.
template <class T>
const float* in_f32(const ConstTensorView& view, float* to) {
  if (!view) return nullptr;
  if constexpr (std::is_same_v<T, float>) {
    return view.as<float>();
  } else {
    for (std::int64_t i = 0; i < view.count(); ++i) to[i] = widen(view.as<T>()[i]);
    return to;
  }
}

template <class T>
class SkipNorm {
 public:
  SkipNorm(const NormKind& kind, const Memory& memory, const RunContext& context, Inputs inputs, Outputs outputs)
      : kind_(kind), memory_(memory), workspace_(context.workspace), inputs_(inputs), outputs_(outputs) {
    n_ = outputs[0].dims.back();
    skip_rows_ = inputs[1].count() / n_;
    gamma_ = in_f32<T>(inputs[2], memory.row(workspace_, 0));
    if (!kind.rms) beta_ = in_f32<T>(optional_input(inputs, 3), memory.row(workspace_, 1));
    bias_ = in_f32<T>(optional_input(inputs, bias_input(kind.rms)), memory.row(workspace_, 2));
    means_ = wanted<float>(1);
    deviations_ = wanted<float>(2);
    sums_ = wanted<T>(kSumOutput);
  }

  void row(std::int64_t r, int worker) const {
    const T* x = inputs_[0].as<T>() + r * n_;
    const T* skip = inputs_[1].as<T>() + r % skip_rows_ * n_;
    T* y = outputs_[0].as<T>() + r * n_;
    T* sum = sums_ != nullptr ? sums_ + r * n_ : nullptr;
    float* wide = nullptr;
    float* result = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      wide = sum != nullptr ? sum : y;
      result = y;
    } else {
      wide = result = memory_.row(workspace_, static_cast<std::size_t>(worker) + 3);
    }
    for (std::int64_t i = 0; i < n_; ++i) wide[i] = widen(x[i]) + widen(skip[i]) + (bias_ != nullptr ? bias_[i] : 0);
    if constexpr (!std::is_same_v<T, float>) {
      for (std::int64_t i = 0; i < n_ && sum != nullptr; ++i) sum[i] = convert<T>(wide[i]);
    }
    const Moments<float> m = kind_(NormArgs<float>{wide, result, gamma_, beta_, n_});
    if constexpr (!std::is_same_v<T, float>) {
      for (std::int64_t i = 0; i < n_; ++i) y[i] = convert<T>(result[i]);
    }
    if (means_ != nullptr) means_[r] = m.mean;
    if (deviations_ != nullptr) deviations_[r] = m.inverse_std;
  }

 private:
  template <class Element>
  Element* wanted(std::size_t i) const {
    return i < outputs_.size() && outputs_[i] ? outputs_[i].template as<Element>() : nullptr;
  }

  const NormKind& kind_;
  const Memory& memory_;
  std::byte* workspace_;
  Inputs inputs_;
  Outputs outputs_;
  std::int64_t n_ = 0, skip_rows_ = 0;
  const float* gamma_ = nullptr;
  const float* beta_ = nullptr;
  const float* bias_ = nullptr;
  float* means_ = nullptr;
  float* deviations_ = nullptr;
  T* sums_ = nullptr;
};

std::unique_ptr<NodePlan> plan(const NodeContext& node, bool rms) {
  NormKind kind;
  kind.rms = rms;
  kind.epsilon = node.attributes.real("epsilon", 1e-12f);
  const Memory memory(node.inputs[0].type, node.inputs[0].dims.back());
  const auto run = [=](const RunContext& context, Inputs inputs, Outputs outputs) {
    if (outputs[0].count() == 0) return;
    const std::int64_t n = outputs[0].dims.back();
    const std::int64_t rows = outputs[0].count() / n;
    const std::int64_t block = std::max<std::int64_t>(1, 8192 / n);
    visit_type(outputs[0].type, [&](auto element) {
      using T = decltype(element);
      if constexpr (kIsHalf<T> || std::is_same_v<T, float>) {
        const SkipNorm<T> norm(kind, memory, context, inputs, outputs);
        context.threads.parallel_for((rows + block - 1) / block, [&](std::int64_t task, int worker) {
          for (std::int64_t r = task * block; r < std::min(rows, (task + 1) * block); ++r) norm.row(r, worker);
        });
      }
    });
  };
  return make_plan(run, [memory](int workers) { return memory.bytes(workers); });
}

OpFunctions skip_norm(bool rms) {
  return {.infer = [rms](const char* op, const InferContext& node) { return infer(op, node, rms); },
          .plan = [rms](const char*, const NodeContext& node, const Infos&) { return plan(node, rms); }};
}

}  // namespace

void add_skip_norm_ops(Registry* registry) {
  registry->add(make_op("com.microsoft.SkipLayerNormalization", skip_norm(false)));
  registry->add(make_op("com.microsoft.SkipSimplifiedLayerNormalization", skip_norm(true)));
}

}  // namespace headway
