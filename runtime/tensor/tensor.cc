// Owned memory: alignment, huge pages, and the tensor over it. Elements are never initialised.
#include <cstdlib>
#include <limits>

#include "headway/tensor.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headway {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

std::size_t tensor_bytes(DataType type, const Dims& dims) {
  const auto count = static_cast<std::uint64_t>(element_count(dims));
  const std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
  require(count <= limit / size_bytes(type), "the bytes of a tensor of ", type_name(type), ' ', dims,
          " do not fit 63 bits");
  return count * size_bytes(type);
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_bytes_(bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, huge ? kHugePage : kAlignment, bytes) != 0) {
    // With no memory for the message either there is one without numbers.
    translate_bad_alloc([&] { fail(ErrorCode::kOutOfMemory, "cannot allocate ", bytes, " bytes"); });
  }
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // A hint: without it 4 KiB pages cost page faults on first use and TLB misses ever after. Refusal is no error.
  if (huge) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
#endif
  data_.reset(static_cast<std::byte*>(memory));
}

void AlignedBuffer::Free::operator()(std::byte* p) const noexcept { std::free(p); }

Tensor::Tensor(DataType type, const Dims& dims) : buffer_(tensor_bytes(type, dims)), type_(type), dims_(dims) {}

Tensor Tensor::shared(DataType type, const Dims& dims, std::shared_ptr<const std::byte> data) {
  require(data != nullptr || element_count(dims) == 0, "the shared memory of a tensor is null");
  require(reinterpret_cast<std::uintptr_t>(data.get()) % headway::size_bytes(type) == 0,
          "the shared memory of a tensor of ", type_name(type), " is not aligned to its element");
  Tensor tensor;
  tensor.shared_ = std::move(data);
  tensor.type_ = type;
  tensor.dims_ = dims;
  return tensor;
}

Tensor Tensor::foreign(DataType type, const Dims& dims, std::shared_ptr<const ExternalBuffer> bytes) {
  require(bytes != nullptr, "the foreign memory of a tensor is null");
  Tensor tensor;
  tensor.foreign_ = std::move(bytes);
  tensor.type_ = type;
  tensor.dims_ = dims;
  return tensor;
}

}  // namespace headway
