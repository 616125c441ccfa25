// See external_data.h.
#include "runtime/onnx/external_data.h"

#include <algorithm>
#include <filesystem>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/names.h"

namespace headway::importer {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::string& location, const std::string& tensor) {
  const auto found = files_.find(location);
  if (found != files_.end()) return found->second;
  require(!folder_.empty(), tensor, " lies in the file ", quoted(location), ", but the model has no folder");
  const fs::path relative(location);
  const bool plain = !location.empty() && location.find('\0') == std::string::npos && relative.is_relative() &&
                     std::find(relative.begin(), relative.end(), "..") == relative.end();
  require(plain, tensor, " lies in the file ", quoted(location), ", expected a path below the model's folder");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) fail(ErrorCode::kIo, folder_, ": cannot open: ", error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error) {
    fail(ErrorCode::kIo, tensor, " lies in the file ", quoted(location), ", which cannot be opened: ", error.message());
  }
  require(is_below(path, folder), tensor, " lies in the file ", quoted(location),
          ", which leads outside the model's folder");
  return files_[location] = std::make_shared<const MappedFile>(path.string());
}

}  // namespace headway::importer
