// Reductions over any axes: ReduceSum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp. Decides the order of
// the axes and of the additions, by shape alone; what is done to the elements is reduction.h.
#include <algorithm>
#include <array>

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "ops/graph/reduce/reduction.h"
#include "ops/graph/table_op.h"

namespace headway {
namespace {

/// Axes that go, as bits; none named means all, or none at all where the node says so.
std::uint32_t reduced_axes(const char* op, const Attributes& attributes, const std::vector<std::int64_t>& named,
                           std::size_t rank) {
  require(rank <= kMaxRank, op, " input 0 has rank ", rank, ", at most ", kMaxRank, " is supported");
  std::uint32_t axes = 0;
  for (const int a : normalised_axes(op, named, rank)) axes |= 1u << a;
  if (named.empty() && attributes.integer("noop_with_empty_axes", 0) == 0) axes = (1u << rank) - 1;
  return axes;
}

/// Axes that are not known yet: the rank is where axes stay, or where their number is known.
std::optional<DimList> unknown_result(const InferContext& node, bool keep) {
  const std::size_t rank = node.inputs[0].dims->size();
  if (keep) return node.unknown_sizes(rank);
  const auto& axes = node.inputs[1].dims;
  const bool counted = axes && axes->size() == 1 && (*axes)[0].is_number() && (*axes)[0].factor > 0;
  if (!counted || (*axes)[0].factor > static_cast<std::int64_t>(rank)) return std::nullopt;
  return node.unknown_sizes(rank - static_cast<std::size_t>((*axes)[0].factor));
}

/// The input's axes in two groups, those that stay and those that go, each merged where strides allow.
struct Axes {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> size{}, stride{};

  void add(std::int64_t new_size, std::int64_t new_stride) {
    if (new_size == 1) return;
    const auto last = static_cast<std::size_t>(rank - 1);
    if (rank > 0 && stride[last] == new_size * new_stride) {
      size[last] *= new_size;
      stride[last] = new_stride;
      return;
    }
    size[static_cast<std::size_t>(rank)] = new_size;
    stride[static_cast<std::size_t>(rank)] = new_stride;
    ++rank;
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (int a = rank - 1; a >= 0; --a) {
      const auto i = static_cast<std::size_t>(a);
      at += index % size[i] * stride[i];
      index /= size[i];
    }
    return at;
  }
};

struct Shape {
  Axes kept, gone;
  std::int64_t outputs = 0, elements = 0;  // elements per output
  std::int64_t run = 1, run_stride = 0;    // the innermost of the axes that go
};

Shape shape_of(const Dims& dims, std::uint32_t axes) {
  const Dims strides = contiguous_strides(dims);
  Shape shape;
  shape.outputs = shape.elements = 1;
  for (int a = 0; a < dims.rank(); ++a) {
    const bool goes = (axes >> a & 1u) != 0;
    (goes ? shape.gone : shape.kept).add(dims[a], strides[a]);
    (goes ? shape.elements : shape.outputs) *= dims[a];
  }
  if (shape.gone.rank > 0) {
    const auto last = static_cast<std::size_t>(shape.gone.rank - 1);
    shape.run = shape.gone.size[last];
    shape.run_stride = shape.gone.stride[last];
  }
  return shape;
}

/// Elements that are taken together before they join the rest, by pairs of blocks.
constexpr std::int64_t kBlock = 1024;

/// One output: runs of the innermost axis, one after the other.
template <class T, class R>
T reduce_one(const T* x, const Shape& shape) {
  using A = reduction::Accumulator<T>;
  if constexpr (std::is_integral_v<T>) {
    // The accumulator is wider than the element, and so are its extremes.
    if (shape.elements == 0 && std::is_same_v<R, reduction::Max<A>>) return std::numeric_limits<T>::lowest();
    if (shape.elements == 0 && std::is_same_v<R, reduction::Min<A>>) return std::numeric_limits<T>::max();
  }
  const auto make = [&] {
    if constexpr (requires { typename R::Pivot; }) {
      // Needs the largest element first.
      typename R::Pivot largest;
      for (std::int64_t i = 0; i < shape.elements; i += shape.run) {
        const T* at = x + shape.gone.offset(i);
        for (std::int64_t k = 0; k < shape.run; ++k) largest.add(reduction::accumulated(at[k * shape.run_stride]));
      }
      return R(shape.elements == 0 ? A{} : largest.result(shape.elements), 0);
    } else {
      return R();
    }
  };
  // Four at a time, so that one addition need not wait for the one before it.
  const R empty = make();
  R parts[4] = {empty, empty, empty, empty};
  const auto take = [&](const T* at, std::int64_t n) {
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      for (int p = 0; p < 4; ++p) parts[p].add(reduction::accumulated(at[(k + p) * shape.run_stride]));
    }
    for (; k < n; ++k) parts[0].add(reduction::accumulated(at[k * shape.run_stride]));
  };
  const auto joined = [&] {
    for (int p = 1; p < 4; ++p) parts[0].join(parts[p]);
    return parts[0];
  };
  if (shape.elements <= kBlock) {
    for (std::int64_t i = 0; i < shape.elements; i += shape.run) take(x + shape.gone.offset(i), shape.run);
    return convert<T>(joined().result(shape.elements));
  }
  reduction::Pairwise<R> blocks(empty);
  std::int64_t in_block = 0;
  for (std::int64_t i = 0; i < shape.elements; i += shape.run) {
    const T* at = x + shape.gone.offset(i);
    for (std::int64_t k = 0; k < shape.run;) {
      const std::int64_t n = std::min(shape.run - k, kBlock - in_block);
      take(at + k * shape.run_stride, n);
      k += n;
      in_block += n;
      if (in_block < kBlock) continue;
      blocks.take(joined());
      std::fill_n(parts, 4, empty);
      in_block = 0;
    }
  }
  blocks.take(joined());
  return convert<T>(blocks.total().result(shape.elements));
}

using ReduceKernel = void (*)(const ConstTensorView& x, const TensorView& y, const Shape& shape, std::int64_t begin,
                              std::int64_t end);

template <class T, class R>
void reduce_range(const ConstTensorView& x, const TensorView& y, const Shape& shape, std::int64_t begin,
                  std::int64_t end) {
  const T* from = x.as<T>();
  T* to = y.as<T>();
  for (std::int64_t i = begin; i < end; ++i) to[i] = reduce_one<T, R>(from + shape.kept.offset(i), shape);
}

/// Null where the reduction has no such type.
using KernelOf = ReduceKernel (*)(DataType);

template <template <class> class R, bool kFloatsOnly>
ReduceKernel kernel_of(DataType type) {
  return visit_type(type, [](auto kind) -> ReduceKernel {
    using T = decltype(kind);
    if constexpr (!std::is_same_v<T, bool> && (kIsFloat<T> || !kFloatsOnly)) {
      return &reduce_range<T, R<reduction::Accumulator<T>>>;
    }
    return nullptr;
  });
}

/// f64 alone has elements whose squares no accumulator holds.
ReduceKernel l2_kernel(DataType type) {
  if (type == DataType::kF64) return &reduce_range<double, reduction::ScaledL2<double>>;
  return kernel_of<reduction::L2, true>(type);
}

OpFunctions reduction_op(KernelOf kernel_for) {
  return {.infer = [kernel_for](const char* op, const InferContext& node) -> Inferred {
            check_inputs(op, node, 1, 2);
            if (kernel_for(node.inputs[0].type.value_or(DataType::kF32)) == nullptr) {
              check_type(op, node, 0, kernel_for(DataType::kI64) == nullptr ? kFloatTypes : kNumericTypes);
            }
            const bool keep = node.attributes.integer("keepdims", 1) != 0;
            node.attributes.integer("noop_with_empty_axes", 0);
            const auto named = integers_of(op, node, 1, "axes");
            ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
            if (!node.inputs[0].dims) return {out};
            if (!named) {
              out.dims = unknown_result(node, keep);
              return {out};
            }
            const DimList& from = *node.inputs[0].dims;
            const std::uint32_t axes = reduced_axes(op, node.attributes, *named, from.size());
            out.dims.emplace();
            for (std::size_t a = 0; a < from.size(); ++a) {
              const bool goes = (axes >> a & 1u) != 0;
              if (!goes || keep) out.dims->push_back(goes ? Dim(1) : from[a]);
            }
            return {out};
          },
          .plan =
              [kernel_for](const char* op, const NodeContext& node, const Infos& outputs) {
                const Shape shape =
                    shape_of(node.inputs[0].dims, reduced_axes(op, node.attributes, integers_of(node, 1, "axes"),
                                                               static_cast<std::size_t>(node.inputs[0].dims.rank())));
                const ReduceKernel kernel = kernel_for(outputs[0].type);
                const std::int64_t block = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(shape.elements, 1));
                return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
                  context.threads.parallel_for((shape.outputs + block - 1) / block, [&](std::int64_t task, int) {
                    kernel(inputs[0], results[0], shape, task * block, std::min(shape.outputs, (task + 1) * block));
                  });
                });
              }};
}

}  // namespace

void add_reduce_ops(Registry* registry) {
  const auto add = [&](const char* op, KernelOf kernel) { registry->add(make_op(op, reduction_op(kernel))); };
  add("ReduceSum", kernel_of<reduction::Sum, false>);
  add("ReduceMean", kernel_of<reduction::Mean, false>);
  add("ReduceMax", kernel_of<reduction::Max, false>);
  add("ReduceMin", kernel_of<reduction::Min, false>);
  add("ReduceProd", kernel_of<reduction::Product, false>);
  add("ReduceSumSquare", kernel_of<reduction::SumSquare, false>);
  add("ReduceL1", kernel_of<reduction::L1, false>);
  add("ReduceL2", l2_kernel);
  add("ReduceLogSum", kernel_of<reduction::LogSum, true>);
  add("ReduceLogSumExp", kernel_of<reduction::LogSumExp, true>);
}

}  // namespace headway
