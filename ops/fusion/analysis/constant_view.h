// Looking at constants that may lie in a file: as they lie, or aligned for as long as somebody looks, so that no copy
// of a model's weights stays behind.
#pragma once

#include <memory>
#include <vector>

#include "headway/tensor.h"

namespace headway::fusion {

/// Right in type and dims, at any alignment: for those who do not look at the elements.
inline ConstTensorView unaligned_view(const Tensor& tensor) {
  const ExternalBuffer* foreign = tensor.foreign();
  return foreign != nullptr ? ConstTensorView(foreign->bytes(), tensor.type(), tensor.dims()) : tensor.view();
}

/// Aligned views, good for the life of the object.
class ConstantViews {
 public:
  ConstantViews() = default;
  ~ConstantViews() {
    for (const ExternalBuffer* foreign : read_) foreign->advise_unneeded();
  }
  ConstantViews(const ConstantViews&) = delete;
  ConstantViews& operator=(const ConstantViews&) = delete;

  ConstTensorView view(const Tensor& tensor) {
    const ExternalBuffer* foreign = tensor.foreign();
    if (foreign == nullptr) return tensor.view();
    read_.push_back(foreign);
    handles_.push_back(foreign->aligned());
    return {handles_.back().get(), tensor.type(), tensor.dims()};
  }

 private:
  std::vector<std::shared_ptr<const std::byte>> handles_;
  std::vector<const ExternalBuffer*> read_;
};

}  // namespace headway::fusion
