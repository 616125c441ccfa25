// Sizes of a convolution of one to three spatial axes, brought to three: kernel, strides, dilations, pads, output.
// Knows no operator and no memory.
#pragma once

#include <array>
#include <cstdint>

#include "headway/tensor.h"

namespace headway {

struct ConvShape {
  static constexpr std::size_t kAxes = 3;
  using Sizes = std::array<std::int64_t, kAxes>;

  std::int64_t batch = 0, groups = 1;
  std::int64_t in_channels = 0, out_channels = 0;  // of one group
  Sizes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Sizes stride{1, 1, 1}, dilation{1, 1, 1}, pad_before{0, 0, 0};

  std::int64_t in_spatial() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_spatial() const { return out[0] * out[1] * out[2]; }
  std::int64_t kernel_spatial() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Elements that one output is a sum over.
  std::int64_t depth() const { return in_channels * kernel_spatial(); }

  /// Offset within one channel of the input for output position `o` and kernel position `k` (both row-major), or −1 for
  /// a place in the padding.
  std::int64_t source(const Sizes& o, const Sizes& k) const {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < kAxes; ++a) {
      const std::int64_t at = o[a] * stride[a] - pad_before[a] + k[a] * dilation[a];
      if (at < 0 || at >= in[a]) return -1;
      offset = offset * in[a] + at;
    }
    return offset;
  }

  static Sizes position(const Sizes& sizes, std::int64_t index) {
    return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
  }
};

}  // namespace headway
