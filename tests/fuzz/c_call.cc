// See c_call.h.
#include "tests/fuzz/c_call.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace headway::fuzz {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 20;
// Nothing between small and absurd: sizes that are right and large would only take time.
constexpr std::int64_t kNumbers[] = {-1, 0, 1, 2, 3, 5, 9, 64, std::int64_t{1} << 61, INT64_MIN, INT64_MAX, -7};

/// First and last byte of a tensor's elements from its data on; false when it has none, or more than kMaxBytes.
bool extent(const headway_tensor& tensor, std::int64_t* first, std::int64_t* end) {
  const std::int64_t element = (std::int64_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  std::int64_t low = 0, high = 0, contiguous = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    const std::int64_t size = tensor.shape[i];
    if (size <= 0 || size > kMaxBytes) return false;
    const std::int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : contiguous;
    if (stride > kMaxBytes || stride < -kMaxBytes) return false;
    (stride < 0 ? low : high) += (size - 1) * stride;
    contiguous *= size;
    if (high > kMaxBytes || low < -kMaxBytes || contiguous > kMaxBytes) return false;
  }
  *first = low * element;
  *end = (high + 1) * element;
  return *end - *first <= kMaxBytes;
}

}  // namespace

void CCall::tensor(const headway_tensor** field, int code, int bits, std::vector<std::int64_t> dims, CRole role,
                   std::int64_t below) {
  One one{field, {}, std::move(dims), {}, role, below, {}, {}, {}};
  one.tensor.device = {1, 0};
  one.tensor.dtype = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  std::int64_t stride = 1;
  one.strides.resize(one.shape.size());
  for (std::size_t i = one.shape.size(); i-- > 0;) {
    one.strides[i] = stride;
    stride *= std::max<std::int64_t>(one.shape[i], 1);
  }
  one.tensor.ndim = static_cast<std::int32_t>(one.shape.size());
  tensors_.push_back(std::move(one));
}

void CCall::make() {
  for (std::int64_t times = dice_.between(0, 3); times > 0; --times) spoil();
  for (One& one : tensors_) {
    if (one.field == nullptr) continue;
    one.tensor.shape = one.shape.data();
    one.tensor.strides = one.strides.empty() ? nullptr : one.strides.data();
    give_memory(&one);
    *one.field = &one.tensor;
  }
}

std::string CCall::written() const {
  std::string text;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].memory != tensors_[i].before) text += " " + std::to_string(i);
  }
  return text;
}

void CCall::spoil() {
  const auto some = [&](const auto& list) { return list[dice_.below(list.size())]; };
  switch (dice_.below(6)) {
    case 0:
      if (!numbers_.empty()) *some(numbers_) = dice_.pick(kNumbers);
      return;
    case 1:
      if (!choices_.empty()) *some(choices_) = static_cast<std::int32_t>(dice_.between(-2, 6));
      return;
    case 2:
      if (!reals_.empty()) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        *some(reals_) =
            dice_.pick({0.0f, -1.0f, 30.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
      }
      return;
    case 3:
      if (!sizes_.empty() && dice_.one_in(4)) *some(sizes_) = dice_.pick<std::size_t>({0, 8, 24, SIZE_MAX});
      return;
    default:
      if (!tensors_.empty()) spoil_tensor(&tensors_[dice_.below(tensors_.size())]);
  }
}

void CCall::spoil_tensor(One* one) {
  headway_tensor& tensor = one->tensor;
  const std::size_t rank = one->shape.size();
  switch (dice_.below(9)) {
    case 0:
      one->field = nullptr;  // absent
      return;
    case 1:
      tensor.ndim = static_cast<std::int32_t>(dice_.pick({-1, 0, 1, 2, 3, 4, 8, 9, 64}));
      one->shape.resize(static_cast<std::size_t>(std::max(tensor.ndim, 0)), 1);
      one->strides.resize(one->shape.size(), 1);
      return;
    case 2:
      tensor.dtype.code = static_cast<std::uint8_t>(dice_.below(8));
      return;
    case 3:
      tensor.dtype.bits = static_cast<std::uint8_t>(dice_.pick({0, 1, 7, 8, 16, 32, 64, 255}));
      return;
    case 4:
      tensor.dtype.lanes = static_cast<std::uint16_t>(dice_.pick({0, 2, 65535}));
      return;
    case 5:
      if (rank > 0) one->shape[dice_.below(rank)] = dice_.pick(kNumbers);
      return;
    case 6:
      if (rank > 0) one->strides[dice_.below(rank)] = dice_.pick(kNumbers);
      return;
    case 7:
      tensor.device.device_type = static_cast<decltype(tensor.device.device_type)>(dice_.between(0, 3));
      return;
    default:
      one->below = dice_.pick<std::int64_t>({-1, 1, 1000, INT32_MAX});  // indices beyond what there is
      one->given.clear();
  }
}

void CCall::give_memory(One* one) {
  std::int64_t first = 0, end = 0;
  one->tensor.data = nullptr;
  if (!extent(one->tensor, &first, &end)) return;
  one->memory.resize(static_cast<std::size_t>(end - first));
  fill(one);
  one->before = one->memory;
  one->tensor.data = one->memory.data() - first;
}

void CCall::fill(One* one) {
  std::vector<std::uint8_t>& memory = one->memory;
  const auto put = [&](std::size_t i, auto value) {
    if ((i + 1) * sizeof(value) <= memory.size()) std::memcpy(memory.data() + i * sizeof(value), &value, sizeof(value));
  };
  switch (one->role) {
    case CRole::kIndices:
      for (std::size_t i = 0; i < memory.size() / 4; ++i) {
        const bool given = i < one->given.size();
        put(i, given ? one->given[i]
                     : static_cast<std::int32_t>(one->below < 0 ? -static_cast<std::int64_t>(dice_.below(5))
                                                                : dice_.below(static_cast<std::uint64_t>(one->below))));
      }
      return;
    case CRole::kBools:
      for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(dice_.below(2));
      return;
    default:
      for (std::size_t i = 0; i < memory.size() / 4; ++i) put(i, dice_.unit());
  }
}

}  // namespace headway::fuzz
