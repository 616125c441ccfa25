// See mapped_buffer.h. Serialised tensors lie where the names before them leave them, so three of four floats' lists
// are not aligned.
#include "runtime/onnx/mapped_buffer.h"

#include <cstdint>
#include <cstring>

namespace headway::importer {

std::shared_ptr<const std::byte> MappedBuffer::aligned() const {
  if (reinterpret_cast<std::uintptr_t>(bytes_.data()) % element_bytes_ == 0) return {file_, bytes_.data()};
  const std::lock_guard lock(mutex_);
  if (auto copy = copy_.lock()) return copy;
  const auto buffer = std::make_shared<const AlignedBuffer>(bytes_.size());
  std::memcpy(buffer->data(), bytes_.data(), bytes_.size());
  advise_unneeded();
  const std::shared_ptr<const std::byte> copy(buffer, buffer->data());
  copy_ = copy;
  return copy;
}

const std::byte* MappedBuffer::aligned_view() const {
  std::shared_ptr<const std::byte> copy = aligned();
  const std::lock_guard lock(mutex_);
  if (!pinned_) pinned_ = std::move(copy);
  return pinned_.get();
}

}  // namespace headway::importer
