// Files of external data: found in the model's folder and nowhere else, each mapped once. Knows nothing of tensors.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/base/mapped_file.h"

namespace headway::importer {

class ExternalFiles {
 public:
  /// `folder` is the model's; empty refuses every file.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Throws kInvalidArgument, naming `tensor`, unless `location` is a path of a file below the folder, links followed;
  /// kIo when it cannot be read.
  std::shared_ptr<const MappedFile> open(const std::string& location, const std::string& tensor);

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace headway::importer
