// Folders of cases that torch computed in double: the fixtures beside the tests, and a larger set where a checkout has
// one next to it. Knows the files, not the operators.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headway/safetensors.h"
#include "headway_test_paths.h"

namespace headway::testing {

/// The folders called `name` that exist: tests/fixtures/<name>, then ../shared/data/<name> beside the checkout.
inline std::vector<std::filesystem::path> case_folders(const std::string& name) {
  const std::filesystem::path source = HEADWAY_SOURCE_DIR;
  std::vector<std::filesystem::path> folders;
  for (const auto& folder : {source / "tests" / "fixtures" / name, source / ".." / "shared" / "data" / name}) {
    if (std::filesystem::exists(folder / "configs.json")) folders.push_back(folder);
  }
  return folders;
}

nlohmann::json read_json(const std::filesystem::path& path);

/// The tensors of one configuration: `name` stands for "NNN.<name>".
class TorchCase {
 public:
  TorchCase(const SafetensorsFile& file, int id);
  bool has(const std::string& name) const { return file_.has(prefix_ + name); }
  /// Absent when the file does not have it.
  ConstTensorView tensor(const std::string& name) const;

 private:
  const SafetensorsFile& file_;
  std::string prefix_;
};

/// The largest |got − expected| / (1 + |expected|) over all elements; infinite when one is NaN and the other is not.
/// `got` is contiguous f32 or f64, `expected` contiguous f32 with as many elements.
double worst_difference(const ConstTensorView& got, const ConstTensorView& expected);

}  // namespace headway::testing
