// Softmax over one axis as a graph operator. Decides where a row is gathered; ops/simd computes it in f32, which narrow
// types are widened to and rounded from once; f64 is plain.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "ops/simd/softmax.h"

namespace headway {
namespace {

int axis_of(const char* op, const Attributes& attributes, std::size_t rank) {
  return normalised_axis(op, attributes.integer("axis", -1), rank);
}

/// As the f32 kernel does it: −inf gives 0, NaN gives NaN in all, a row of nothing but −inf gives NaN.
void softmax_row_f64(double* row, std::int64_t n) {
  double max = std::numeric_limits<double>::lowest();
  for (std::int64_t i = 0; i < n; ++i) max = std::max(max, row[i]);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - max);
  for (std::int64_t i = 0; i < n; ++i) row[i] /= sum;
}

/// f16 and bf16 with the attribute per_op_rounding: every step rounded to the type, as ONNX's function body for Softmax
/// (ReduceMax, Sub, Exp, ReduceSum, Div) says and the libraries do that the backend suite's data comes from; they sum
/// bf16 in bf16 and f16 in f32. 4 units in the last place from exact, where computing in f32 gives half a unit.
template <class T>
RowSum softmax_row_half(float* row, std::int64_t n) {
  const auto rounded = [](float x) { return widen(convert<T>(x)); };
  float max = std::numeric_limits<float>::lowest();
  for (std::int64_t i = 0; i < n; ++i) max = std::max(max, row[i]);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    row[i] = rounded(std::exp(rounded(row[i] - max)));
    sum = std::is_same_v<T, BFloat16> ? rounded(sum + row[i]) : sum + row[i];
  }
  sum = rounded(sum);
  for (std::int64_t i = 0; i < n; ++i) row[i] = rounded(row[i] / sum);
  return {.max = max, .sum = sum};
}

/// Rows along the axis of a contiguous tensor: `inner` is the distance between two elements of a row.
struct Rows {
  std::int64_t length, inner, count;
  std::int64_t first(std::int64_t row) const { return row / inner * length * inner + row % inner; }
};

/// T is the element type, C what the row is computed in.
template <class T, class C, class Kernel>
void softmax_rows(const Rows& rows, const T* x, T* y, C* scratch, const Kernel& kernel, std::int64_t begin,
                  std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const T* from = x + rows.first(r);
    T* to = y + rows.first(r);
    C* row = scratch;
    if constexpr (std::is_same_v<T, C>) row = rows.inner == 1 ? to : scratch;
    for (std::int64_t i = 0; i < rows.length; ++i) row[i] = widen(from[i * rows.inner]);
    kernel(row, rows.length);
    if (row != scratch) continue;
    for (std::int64_t i = 0; i < rows.length; ++i) to[i * rows.inner] = convert<T>(row[i]);
  }
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos& outputs) {
  const Dims& dims = outputs[0].dims;
  const int axis = axis_of(op, node.attributes, static_cast<std::size_t>(dims.rank()));
  const std::int64_t count = element_count(dims);
  const Rows rows{dims[axis], contiguous_strides(dims)[axis], count == 0 ? 0 : count / dims[axis]};
  const std::int64_t block = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(rows.length, 1));
  const std::size_t element = outputs[0].type == DataType::kF64 ? sizeof(double) : sizeof(float);
  const std::size_t row_bytes = (static_cast<std::size_t>(rows.length) * element + 63) / 64 * 64;
  const bool per_op = node.attributes.integer("per_op_rounding", 0) != 0;
  const auto run = [=, kernels = softmax_kernels()](const RunContext& context, Inputs inputs, Outputs results) {
    context.threads.parallel_for((rows.count + block - 1) / block, [&](std::int64_t task, int worker) {
      std::byte* scratch = context.workspace + static_cast<std::size_t>(worker) * row_bytes;
      const std::int64_t begin = task * block;
      const std::int64_t end = std::min(rows.count, begin + block);
      visit_type(inputs[0].type, [&](auto kind) {
        using T = decltype(kind);
        if constexpr (kIsFloat<T>) {
          using C = ComputeType<T>;
          auto* line = reinterpret_cast<C*>(scratch);
          if constexpr (std::is_same_v<T, double>) {
            softmax_rows(rows, inputs[0].as<T>(), results[0].as<T>(), line, softmax_row_f64, begin, end);
          } else if constexpr (kIsHalf<T>) {
            const auto kernel = per_op ? &softmax_row_half<T> : kernels.softmax_row;
            softmax_rows(rows, inputs[0].as<T>(), results[0].as<T>(), line, kernel, begin, end);
          } else {
            softmax_rows(rows, inputs[0].as<T>(), results[0].as<T>(), line, kernels.softmax_row, begin, end);
          }
        }
      });
    });
  };
  // A row a worker, for rows that cannot be computed where they are written.
  return make_plan(run, [row_bytes](int workers) { return static_cast<std::size_t>(workers) * row_bytes; });
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  check_type(op, node, 0, kFloatTypes);
  node.attributes.integer("axis", -1);  // of whatever rank the input is
  if (node.inputs[0].dims) axis_of(op, node.attributes, node.inputs[0].dims->size());
  return {like(node.inputs[0])};
}

}  // namespace

void add_softmax_op(Registry* registry) { registry->add(make_op("Softmax", {.infer = infer, .plan = plan})); }

}  // namespace headway
