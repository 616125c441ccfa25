// Reading and writing .safetensors files. A reader that survives hostile files; a writer that never leaves half a file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/export.h"
#include "headway/tensor.h"

namespace headway {

/// A file of named tensors, mapped read-only; the views live as long as the object. Immutable, safe to share.
class HEADWAY_API SafetensorsFile {
 public:
  /// Throws kIo when the file cannot be opened, kInvalidArgument naming the file and both numbers for anything that
  /// cannot be right: truncated, header length beyond the file, bad JSON, dims whose product overflows or disagrees
  /// with the offsets, offsets that overlap, leave the file or leave holes, duplicate names.
  static SafetensorsFile open(const std::string& path);

  /// Names in sorted order.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;
  /// Whether it is there and of a type and a rank that tensor() can show.
  bool can_show(const std::string& name) const;
  /// Throws kInvalidArgument naming the file and the tensor when it is not there, or of a type (U16, F8_E4M3, …) or a
  /// rank that a tensor cannot have.
  ConstTensorView tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;
  const std::string& path() const;

 private:
  struct HEADWAY_PRIVATE Impl;
  explicit SafetensorsFile(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// Writes to a temporary file in the same folder, then renames: `path` is either the whole new file or untouched.
/// Views may have any strides. Throws kIo.
HEADWAY_API void write_safetensors(const std::string& path, const std::map<std::string, ConstTensorView>& tensors,
                                   const std::map<std::string, std::string>& metadata = {});

}  // namespace headway
