// The strides of each layout, and the poison in its gaps.
#include "tests/support/strided.h"

#include <cstring>

namespace headway::testing {
namespace {

// Quiet NaNs that no arithmetic makes, as f32 and as two of bf16.
constexpr std::uint32_t kPoisonBits = 0x7fc0dead;
constexpr std::uint16_t kHalfPoisonBits = 0x7fd5;

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
  const std::int64_t row = layout == Layout::kOddStart ? d + 2 : d + 3;
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
    case Layout::kOddStart:
      return {1, 1 + dims[0] * h * s * row, {h * s * row, s * row, row, 1}};
    case Layout::kReversed:
      return {s > 0 ? (s - 1) * d : 0, count, {h * s * d, s * d, -d, 1}};
  }
  return {};
}

}  // namespace

const char* name(Layout layout) {
  constexpr const char* kNames[] = {"bhsd",        "bshd",       "packed",    "transposed",
                                    "every_other", "misaligned", "odd_start", "reversed"};
  return kNames[static_cast<int>(layout)];
}

Strided::Strided(const Dims& dims, Layout layout, DataType type) {
  const Placement placement = place(dims, layout);
  size_ = static_cast<std::size_t>(placement.elements) + 1;  // never empty: a view of nothing has a pointer
  memory_.resize((size_ * size_bytes(type) + 3) / 4);
  std::byte* first = reinterpret_cast<std::byte*>(memory_.data());
  first += static_cast<std::size_t>(placement.start) * size_bytes(type);
  view_ = TensorView(first, type, dims, placement.strides);
  poison();
}

Element Strided::at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
  const std::int64_t at = offset_of(view_.strides, b, h, s, d);
  return {view_.data + at * static_cast<std::int64_t>(size_bytes(view_.type)), view_.type};
}

void Strided::fill_normal(Random& random) {
  each(view_.dims, [&](auto b, auto h, auto i, auto j) { at(b, h, i, j) = random.normal(); });
}

void Strided::fill(float value) {
  each(view_.dims, [&](auto b, auto h, auto i, auto j) { at(b, h, i, j) = value; });
}

void Strided::poison() {
  const bool half = view_.type == DataType::kBF16;
  for (std::uint32_t& word : memory_) word = half ? kHalfPoisonBits * 0x10001u : kPoisonBits;
}

bool Strided::gaps_written() const {
  if (view_.rank() != 4) return false;
  std::vector<bool> used(size_);
  const auto bytes = static_cast<std::int64_t>(size_bytes(view_.type));
  const std::byte* memory = reinterpret_cast<const std::byte*>(memory_.data());
  const std::int64_t start = (view_.data - memory) / bytes;
  each(view_.dims, [&](auto b, auto h, auto i, auto j) {
    used[static_cast<std::size_t>(start + offset_of(view_.strides, b, h, i, j))] = true;
  });
  for (std::size_t n = 0; n < size_; ++n) {
    const std::byte* at = memory + static_cast<std::int64_t>(n) * bytes;
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, static_cast<std::size_t>(bytes));
    if (!used[n] && bits != (bytes == 2 ? kHalfPoisonBits : kPoisonBits)) return true;
  }
  return false;
}

}  // namespace headway::testing
