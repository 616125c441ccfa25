// The tensors of a checkpoint folder: model.safetensors, or the files that model.safetensors.index.json names. Knows no
// model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headway/safetensors.h"
#include "headway/tensor.h"

namespace headway::engine {

/// Files are mapped; views live as long as the object.
class Checkpoint {
 public:
  /// Throws Error naming the file.
  explicit Checkpoint(const std::string& folder);

  bool has(const std::string& name) const { return file_of_.contains(name); }
  /// Throws kInvalidArgument naming the tensor and both shapes when it is not there or of other dims; kUnsupported when
  /// it is not f32, bf16 or f16.
  ConstTensorView tensor(const std::string& name, const Dims& dims) const;
  /// The same, as f32.
  std::vector<float> floats(const std::string& name, const Dims& dims) const;

 private:
  void add(const std::string& path);

  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;
};

}  // namespace headway::engine
