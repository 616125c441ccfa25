// The data of one tensor in a mapped file. Knows its alignment, nothing else of the tensor.
#pragma once

#include <memory>
#include <mutex>

#include "headway/tensor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/onnx/wire_format.h"

namespace headway::importer {

class MappedBuffer : public ExternalBuffer {
 public:
  /// `bytes` is part of `file`.
  MappedBuffer(std::shared_ptr<const MappedFile> file, Bytes bytes, std::size_t element_bytes)
      : file_(std::move(file)), bytes_(bytes), element_bytes_(element_bytes) {}

  const std::byte* bytes() const override { return bytes_.data(); }
  std::shared_ptr<const std::byte> aligned() const override;
  const std::byte* aligned_view() const override;
  void advise_unneeded() const override { file_->advise_unneeded(bytes_); }

 private:
  const std::shared_ptr<const MappedFile> file_;
  const Bytes bytes_;
  const std::size_t element_bytes_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const std::byte> copy_;
  mutable std::shared_ptr<const std::byte> pinned_;
};

}  // namespace headway::importer
