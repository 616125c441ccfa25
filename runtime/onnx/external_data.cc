// See external_data.h.
#include "runtime/onnx/external_data.h"

#include <algorithm>
#include <filesystem>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"

namespace headway::importer {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.parent_path().empty() ? "." : path.parent_path(); }

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::string& location, const std::string& tensor) {
  const auto found = files_.find(location);
  if (found != files_.end()) return found->second;
  require(!model_path_.empty(), tensor, " lies in the file ", quoted(location), ", but the model has no folder");
  const fs::path relative(location);
  const bool plain = !location.empty() && location.find('\0') == std::string::npos && relative.is_relative() &&
                     std::find(relative.begin(), relative.end(), "..") == relative.end();
  require(plain, tensor, " lies in the file ", quoted(location), ", expected a path below the model's folder");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_of(model_path_), error);
  if (error) fail(ErrorCode::kIo, printable(model_path_), ": cannot open its folder: ", error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error) {
    fail(ErrorCode::kIo, tensor, " lies in the file ", quoted(location), ", which cannot be opened: ", error.message());
  }
  const fs::path model = fs::canonical(model_path_, error);
  require(is_below(path, folder) || (!error && is_below(path, folder_of(model))), tensor, " lies in the file ",
          quoted(location), ", which leads outside the model's folder");
  return files_[location] = std::make_shared<const MappedFile>(path.string());
}

}  // namespace headway::importer
