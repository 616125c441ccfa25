// Conv of one to three spatial axes. f32: the patches of an image as rows of a matrix, multiplied with the weights,
// packed where they are known; other types by plain loops. Decides that; the product is ops/matmul's.
#include <algorithm>
#include <string>

#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/products/conv_shape.h"
#include "ops/graph/products/product.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// One number a spatial axis from an attribute; `otherwise` where it is missing.
std::vector<std::int64_t> per_axis(const char* op, const Attributes& attributes, const char* key, std::size_t count,
                                   std::int64_t otherwise, std::int64_t least) {
  std::vector<std::int64_t> values = attributes.integers(key);
  if (values.empty()) values.assign(count, otherwise);
  require(values.size() == count, op, ' ', key, " has ", values.size(), " numbers, expected ", count);
  for (const std::int64_t value : values) {
    require(value >= least && value <= INT32_MAX, op, ' ', key, " holds ", value, ", expected ", least, " to ",
            INT32_MAX);
  }
  return values;
}

/// What a node says of its spatial axes.
struct Windows {
  Windows(const char* op, const Attributes& attributes, std::size_t axes)
      : strides(per_axis(op, attributes, "strides", axes, 1, 1)),
        dilations(per_axis(op, attributes, "dilations", axes, 1, 1)),
        pads(per_axis(op, attributes, "pads", 2 * axes, 0, 0)),
        auto_pad(attributes.text("auto_pad", "NOTSET")) {
    require(auto_pad == "NOTSET" || auto_pad == "VALID" || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", op,
            " auto_pad is '", auto_pad, "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  std::vector<std::int64_t> strides, dilations, pads;
  std::string auto_pad;
};

struct Window {
  std::int64_t out = 0, pad_before = 0;
};

/// One spatial axis, `i` of `axes`: `size` elements under a kernel of `kernel`.
Window window_of(const char* op, const Windows& w, std::size_t i, std::int64_t size, std::int64_t kernel) {
  const std::size_t axes = w.strides.size();
  require(kernel >= 1 && kernel <= INT32_MAX && size >= 0 && size <= INT64_MAX / 4, op, " axis ", i + 2, " has ", size,
          " elements and a kernel of ", kernel, ", expected a kernel of 1 or more and sizes that fit");
  const std::int64_t reach = (kernel - 1) * w.dilations[i] + 1;
  Window result;
  std::int64_t padding = w.auto_pad == "VALID" ? 0 : w.pads[i] + w.pads[i + axes];
  result.pad_before = w.auto_pad == "VALID" ? 0 : w.pads[i];
  if (w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER") {
    const std::int64_t out = (size + w.strides[i] - 1) / w.strides[i];
    padding = std::max<std::int64_t>(0, (out - 1) * w.strides[i] + reach - size);
    result.pad_before = w.auto_pad == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
  }
  const std::int64_t room = size + padding - reach;
  require(room >= 0, op, " axis ", i + 2, " has ", size + padding, " elements with its padding, expected at least ",
          reach, " as the kernel reaches");
  result.out = room / w.strides[i] + 1;
  return result;
}

ConvShape shape_of(const char* op, const NodeContext& node) {
  const Dims& x = node.inputs[0].dims;
  const Dims& w = node.inputs[1].dims;
  ConvShape s;
  s.groups = node.attributes.integer("group", 1);
  s.batch = x[0];
  s.in_channels = w[1];
  s.out_channels = w[0] / s.groups;
  const auto axes = static_cast<std::size_t>(x.rank() - 2);
  const Windows windows(op, node.attributes, axes);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t a = ConvShape::kAxes - axes + i;
    const auto axis = static_cast<int>(i) + 2;
    const Window window = window_of(op, windows, i, x[axis], w[axis]);
    s.in[a] = x[axis];
    s.kernel[a] = w[axis];
    s.stride[a] = windows.strides[i];
    s.dilation[a] = windows.dilations[i];
    s.pad_before[a] = window.pad_before;
    s.out[a] = window.out;
  }
  return s;
}

void check_channels(const char* op, const DimList& x, const DimList& w, std::int64_t groups) {
  require(groups >= 1 && (!w[0].is_number() || w[0].factor % groups == 0), op, " group is ", groups,
          ", expected to divide the ", w[0], " output channels");
  if (!x[1].is_number() || !w[1].is_number()) return;
  require(x[1].factor % groups == 0 && x[1].factor / groups == w[1].factor, op, " input has ", x[1],
          " channels, expected ", w[1], " for each of ", groups, " groups");
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 3);
  check_type(op, node, 0, kFloatTypes);
  check_same_type(op, node, 0, 1);
  if (has_input(node, 2)) check_same_type(op, node, 0, 2);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  if (!node.inputs[0].dims || !node.inputs[1].dims) return {out};
  const DimList& x = *node.inputs[0].dims;
  const DimList& w = *node.inputs[1].dims;
  require(x.size() >= 3 && x.size() <= 5, op, " input 0 has rank ", x.size(), ", expected 3 to 5");
  require(w.size() == x.size(), op, " input 1 has rank ", w.size(), ", expected ", x.size());
  check_channels(op, x, w, node.attributes.integer("group", 1));
  if (has_input(node, 2) && node.inputs[2].dims) {
    require(may_equal(*node.inputs[2].dims, DimList{w[0]}), op, " bias has dims ", *node.inputs[2].dims, ", expected ",
            DimList{w[0]});
  }
  const std::size_t axes = x.size() - 2;
  const Windows windows(op, node.attributes, axes);
  const std::vector<std::int64_t> kernel = node.attributes.integers("kernel_shape");
  out.dims = DimList{x[0], w[0]};
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim& size = x[i + 2];
    const Dim& reach = w[i + 2];
    require(kernel.empty() || (kernel.size() == axes && may_equal(Dim(kernel[i]), reach)), op, " kernel_shape has ",
            kernel.size(), " numbers, expected those of the weights, ", w);
    out.dims->push_back(size.is_number() && reach.is_number()
                            ? Dim(window_of(op, windows, i, size.factor, reach.factor).out)
                            : node.unknown_size(static_cast<std::int64_t>(i + 2)));
  }
  return {out};
}

std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class PatchPlan final : public NodePlan {
 public:
  PatchPlan(const ConvShape& s, const ConstTensorView& weights) : s_(s) {
    const ProductSpec spec{.m = s.out_spatial(), .n = s.out_channels, .k = s.depth(), .transpose_b = true};
    for (std::int64_t g = 0; g < (weights ? s.groups : 1); ++g) {
      // [K, N] of group g.
      ConstTensorView w;
      if (weights) {
        w = weights.sliced(0, g * s.out_channels, (g + 1) * s.out_channels)
                .reshaped({s.out_channels, s.depth()})
                .permuted({1, 0});
      }
      products_.push_back(make_product(spec, w));
    }
  }

  std::size_t workspace_bytes(int workers) const override {
    return patch_bytes() + result_bytes() + products_[0]->workspace_bytes(workers);
  }
  std::string explain() const override {
    return "patches of " + std::to_string(s_.depth()) + ", " + products_[0]->explain();
  }

  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    if (outputs[0].count() == 0) return;
    auto* patches = reinterpret_cast<float*>(context.workspace);
    auto* result = reinterpret_cast<float*>(context.workspace + patch_bytes());
    const ConstTensorView bias = optional_input(inputs, 2);
    for (std::int64_t image = 0; image < s_.batch; ++image) {
      for (std::int64_t g = 0; g < s_.groups; ++g) {
        const std::int64_t group = image * s_.groups + g;
        gather(inputs[0].as<float>() + group * s_.in_channels * s_.in_spatial(), patches, context.threads);
        const Product& product = *products_[products_.size() == 1 ? 0 : static_cast<std::size_t>(g)];
        product.run({patches, inputs[1].as<float>() + g * s_.out_channels * s_.depth(), result,
                     context.workspace + patch_bytes() + result_bytes(), context.threads, context.profiler});
        scatter(result, bias ? bias.as<float>() + g * s_.out_channels : nullptr,
                outputs[0].as<float>() + group * s_.out_channels * s_.out_spatial(), context.threads);
      }
    }
  }

 private:
  std::size_t patch_bytes() const { return round_up(tensor_bytes(DataType::kF32, {s_.out_spatial(), s_.depth()})); }
  std::size_t result_bytes() const {
    return round_up(tensor_bytes(DataType::kF32, {s_.out_spatial(), s_.out_channels}));
  }

  /// Row o of `patches` [out_spatial, channels · kernel] is what output o is a sum over.
  void gather(const float* x, float* patches, const Threads& threads) const {
    threads.parallel_for(s_.out[0] * s_.out[1], [&](std::int64_t line, int) {
      for (std::int64_t column = 0; column < s_.out[2]; ++column) {
        const ConvShape::Sizes o{line / s_.out[1], line % s_.out[1], column};
        float* row = patches + (line * s_.out[2] + column) * s_.depth();
        for (std::int64_t c = 0; c < s_.in_channels; ++c) {
          row = gather_channel(x + c * s_.in_spatial(), o, row);
        }
      }
    });
  }

  /// The innermost kernel axis is one stretch of the input where it is not dilated.
  float* gather_channel(const float* x, const ConvShape::Sizes& o, float* row) const {
    const std::int64_t first = o[2] * s_.stride[2] - s_.pad_before[2];
    for (std::int64_t k = 0; k < s_.kernel[0] * s_.kernel[1]; ++k) {
      const std::int64_t i = o[0] * s_.stride[0] - s_.pad_before[0] + k / s_.kernel[1] * s_.dilation[0];
      const std::int64_t j = o[1] * s_.stride[1] - s_.pad_before[1] + k % s_.kernel[1] * s_.dilation[1];
      const bool inside = i >= 0 && i < s_.in[0] && j >= 0 && j < s_.in[1];
      const float* line = x + (inside ? (i * s_.in[1] + j) * s_.in[2] : 0);
      for (std::int64_t l = 0; l < s_.kernel[2]; ++l) {
        const std::int64_t at = first + l * s_.dilation[2];
        *row++ = inside && at >= 0 && at < s_.in[2] ? line[at] : 0.0f;
      }
    }
    return row;
  }

  /// [out_spatial, out_channels] to [out_channels, out_spatial], plus bias.
  void scatter(const float* result, const float* bias, float* y, const Threads& threads) const {
    const std::int64_t spatial = s_.out_spatial();
    constexpr std::int64_t kBlock = 16;  // channels: a cache line of `result`
    threads.parallel_for((s_.out_channels + kBlock - 1) / kBlock, [&](std::int64_t task, int) {
      const std::int64_t begin = task * kBlock;
      const std::int64_t end = std::min(s_.out_channels, begin + kBlock);
      for (std::int64_t o = 0; o < spatial; ++o) {
        for (std::int64_t m = begin; m < end; ++m) {
          y[m * spatial + o] = result[o * s_.out_channels + m] + (bias != nullptr ? bias[m] : 0.0f);
        }
      }
    });
  }

  ConvShape s_;
  std::vector<std::unique_ptr<const Product>> products_;  // one a group where weights are known, else one for all
};

/// One channel of one image at a time.
template <class T>
void plain_conv(const ConvShape& s, const RunContext& context, Inputs inputs, const TensorView& out) {
  using C = ComputeType<T>;
  const T* x = inputs[0].as<T>();
  const T* w = inputs[1].as<T>();
  const ConstTensorView bias = optional_input(inputs, 2);
  T* y = out.as<T>();
  const std::int64_t channels = s.groups * s.out_channels;
  context.threads.parallel_for(s.batch * channels, [&](std::int64_t task, int) {
    const std::int64_t channel = task % channels;
    const std::int64_t group = task / channels * s.groups + channel / s.out_channels;
    const T* image = x + group * s.in_channels * s.in_spatial();
    const T* kernel = w + channel * s.depth();
    for (std::int64_t o = 0; o < s.out_spatial(); ++o) {
      C sum = bias ? widen(bias.as<T>()[channel]) : C{0};
      for (std::int64_t k = 0; k < s.kernel_spatial(); ++k) {
        const std::int64_t at = s.source(ConvShape::position(s.out, o), ConvShape::position(s.kernel, k));
        for (std::int64_t c = 0; at >= 0 && c < s.in_channels; ++c) {
          sum += widen(image[c * s.in_spatial() + at]) * widen(kernel[c * s.kernel_spatial() + k]);
        }
      }
      y[task * s.out_spatial() + o] = convert<T>(sum);
    }
  });
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos& outputs) {
  const ConvShape s = shape_of(op, node);
  if (outputs[0].type == DataType::kF32) {
    return std::make_unique<PatchPlan>(s, node.constants.size() > 1 ? node.constants[1] : ConstTensorView());
  }
  return make_plan([s](const RunContext& context, Inputs inputs, Outputs results) {
    visit_type(inputs[0].type, [&](auto kind) {
      using T = decltype(kind);
      if constexpr (kIsFloat<T>) plain_conv<T>(s, context, inputs, results[0]);
    });
  });
}

}  // namespace

void add_conv_op(Registry* registry) { registry->add(make_op("Conv", {.infer = infer, .plan = plan})); }

}  // namespace headway
