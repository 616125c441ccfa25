// com.microsoft's SkipLayerNormalization and SkipSimplifiedLayerNormalization, f32: the sum of input, skip and bias is
// normalised, and given as a further output where it is wanted.
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
    if (node.inputs[i].present) check_f32(op, node, i);
  }
  const ValueInfo& x = node.inputs[0];
  Inferred outputs(static_cast<std::size_t>(node.num_outputs),
                   {.type = DataType::kF32, .dims = x.dims, .elements = {}});
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

const float* floats(const ConstTensorView& view) { return view ? view.as<float>() : nullptr; }

OpFunctions skip_norm(bool rms) {
  return {.infer = [rms](const char* op, const InferContext& node) { return infer(op, node, rms); },
          .plan =
              [rms](const char*, const NodeContext& node, const Infos&) {
                NormKind kind;
                kind.rms = rms;
                kind.epsilon = node.attributes.real("epsilon", 1e-12f);
                return make_plan([=](const RunContext& context, Inputs inputs, Outputs outputs) {
                  if (outputs[0].count() == 0) return;
                  const std::int64_t n = outputs[0].dims.back();
                  const std::int64_t rows = outputs[0].count() / n;
                  const std::int64_t skip_rows = inputs[1].count() / n;
                  const float* beta = rms ? nullptr : floats(optional_input(inputs, 3));
                  const float* bias = floats(optional_input(inputs, bias_input(rms)));
                  const auto wanted = [&](std::size_t i) -> float* {
                    return i < outputs.size() && outputs[i] ? outputs[i].as<float>() : nullptr;
                  };
                  float* const means = wanted(1);
                  float* const deviations = wanted(2);
                  float* const sums = wanted(kSumOutput);
                  const std::int64_t block = std::max<std::int64_t>(1, 8192 / n);
                  context.threads.parallel_for((rows + block - 1) / block, [&](std::int64_t task, int) {
                    for (std::int64_t r = task * block; r < std::min(rows, (task + 1) * block); ++r) {
                      const float* x = inputs[0].as<float>() + r * n;
                      const float* skip = inputs[1].as<float>() + r % skip_rows * n;
                      float* y = outputs[0].as<float>() + r * n;
                      float* sum = sums != nullptr ? sums + r * n : y;
                      for (std::int64_t i = 0; i < n; ++i) sum[i] = x[i] + skip[i] + (bias != nullptr ? bias[i] : 0);
                      const Moments<float> m = kind(NormArgs<float>{sum, y, inputs[2].as<float>(), beta, n});
                      if (means != nullptr) means[r] = m.mean;
                      if (deviations != nullptr) deviations[r] = m.inverse_std;
                    }
                  });
                });
              }};
}

}  // namespace

void add_skip_norm_ops(Registry* registry) {
  registry->add(make_op("com.microsoft.SkipLayerNormalization", skip_norm(false)));
  registry->add(make_op("com.microsoft.SkipSimplifiedLayerNormalization", skip_norm(true)));
}

}  // namespace headway
