// Files of external data: which of them a model may name, each mapped once. Knows nothing of tensors.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/base/mapped_file.h"

namespace headway::importer {

class ExternalFiles {
 public:
  /// `model_path` is that of the model's file; empty refuses every file.
  explicit ExternalFiles(std::string model_path) : model_path_(std::move(model_path)) {}

  /// Throws kInvalidArgument, naming `tensor`, unless `location` is a path below the model's folder without "..", and
  /// leads, links followed, to a file below that folder or below the one that the model's own links lead to; kIo when
  /// it cannot be read. In a hub's cache model and data are links into one folder of blobs, which is thus taken; a link
  /// that came with a model can show no file but those that lie beside the model itself.
  std::shared_ptr<const MappedFile> open(const std::string& location, const std::string& tensor);

 private:
  std::string model_path_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace headway::importer
