// The strides of each layout, and the poison in its gaps.
#include "tests/support/strided.h"

#include <bit>
#include <cmath>

namespace headway::testing {
namespace {

constexpr std::uint32_t kPoisonBits = 0x7fc0dead;  // a quiet NaN that no arithmetic makes

struct Placement {
  std::int64_t start = 0;
  std::int64_t elements = 0;
  Dims strides;
};

Placement place(const Dims& dims, Layout layout) {
  if (dims.rank() != 4) return {0, element_count(dims), contiguous_strides(dims)};
  const std::int64_t h = dims[1];
  const std::int64_t s = dims[2];
  const std::int64_t d = dims[3];
  const std::int64_t count = element_count(dims);
  const std::int64_t row = d + 3;
  switch (layout) {
    case Layout::kBhsd:
      return {0, count, contiguous_strides(dims)};
    case Layout::kBshd:
      return {0, count, {s * h * d, d, h * d, 1}};
    case Layout::kPackedQkv:
      return {h * d, 3 * count, {3 * s * h * d, d, 3 * h * d, 1}};
    case Layout::kTransposed:
      return {0, count, {h * s * d, s * d, 1, s}};
    case Layout::kEveryOther:
      return {0, 2 * count, {2 * h * s * d, 2 * s * d, 2 * d, 2}};
    case Layout::kMisaligned:
      return {1, 1 + dims[0] * h * s * row, {h * s * row, s * row, row, 1}};
    case Layout::kReversed:
      return {s > 0 ? (s - 1) * d : 0, count, {h * s * d, s * d, -d, 1}};
  }
  return {};
}

}  // namespace

const char* name(Layout layout) {
  constexpr const char* kNames[] = {"bhsd", "bshd", "packed", "transposed", "every_other", "misaligned", "reversed"};
  return kNames[static_cast<int>(layout)];
}

Strided::Strided(const Dims& dims, Layout layout) {
  const Placement placement = place(dims, layout);
  memory_.resize(static_cast<std::size_t>(placement.elements) + 1);  // never empty: a view of nothing has a pointer
  view_ = TensorView(reinterpret_cast<std::byte*>(memory_.data() + placement.start), DataType::kF32, dims,
                     placement.strides);
  poison();
}

float& Strided::at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
  return view_.as<float>()[offset_of(view_.strides, b, h, s, d)];
}

void Strided::fill_normal(Random& random) {
  each(view_.dims, [&](auto b, auto h, auto i, auto j) { at(b, h, i, j) = random.normal(); });
}

void Strided::fill(float value) {
  each(view_.dims, [&](auto b, auto h, auto i, auto j) { at(b, h, i, j) = value; });
}

void Strided::poison() {
  for (float& value : memory_) value = std::bit_cast<float>(kPoisonBits);
}

bool Strided::gaps_written() const {
  if (view_.rank() != 4) return false;
  std::vector<bool> used(memory_.size());
  const float* first = ConstTensorView(view_).as<float>();
  each(view_.dims, [&](auto b, auto h, auto i, auto j) {
    used[static_cast<std::size_t>(first + offset_of(view_.strides, b, h, i, j) - memory_.data())] = true;
  });
  for (std::size_t n = 0; n < memory_.size(); ++n) {
    if (!used[n] && std::bit_cast<std::uint32_t>(memory_[n]) != kPoisonBits) return true;
  }
  return false;
}

}  // namespace headway::testing
