// Which file has which tensor, and weights as f32.
#include "tools/engine/checkpoint.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "headway/error.h"

namespace headway::engine {
namespace {

/// The files that an index names, which lie beside it.
std::set<std::string> indexed_files(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  detail::require(json.is_object() && json.contains("weight_map") && json.at("weight_map").is_object(), path,
                  ": has no object weight_map");
  std::set<std::string> names;
  for (const auto& [tensor, name] : json.at("weight_map").items()) {
    const std::string text = name.is_string() ? name.get<std::string>() : "";
    detail::require(!text.empty() && text.find('/') == std::string::npos, path, ": weight_map of ", tensor,
                    " is no file name");
    names.insert(text);
  }
  return names;
}

float widen(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

float widen(Float16 x) {
  const int exponent = (x.bits >> 10) & 31, fraction = x.bits & 1023;
  const float sign = x.bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return sign * (fraction == 0 ? std::numeric_limits<float>::infinity() : std::nanf(""));
  return exponent == 0 ? sign * std::ldexp(static_cast<float>(fraction), -24)
                       : sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

template <class T>
std::vector<float> widened(const ConstTensorView& view) {
  const T* const from = view.as<T>();
  std::vector<float> to(static_cast<std::size_t>(view.count()));
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = widen(from[i]);
  return to;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  const std::filesystem::path root = folder;
  const std::string whole = (root / "model.safetensors").string(), index = whole + ".index.json";
  if (std::filesystem::exists(whole) || !std::filesystem::exists(index)) {
    add(whole);
  } else {
    for (const std::string& name : indexed_files(index)) add((root / name).string());
  }
}

void Checkpoint::add(const std::string& path) {
  files_.push_back(SafetensorsFile::open(path));
  for (const std::string& name : files_.back().names()) {
    const bool fresh = file_of_.emplace(name, files_.size() - 1).second;
    detail::require(fresh, path, ": tensor ", name, " is in ", files_[file_of_.at(name)].path(), " already");
  }
}

ConstTensorView Checkpoint::tensor(const std::string& name, const Dims& dims) const {
  const auto found = file_of_.find(name);
  detail::require(found != file_of_.end(), folder_, ": has no tensor ", name);
  const ConstTensorView view = files_[found->second].tensor(name);
  detail::require(view.dims == dims, folder_, ": tensor ", name, " is ", view.dims, ", expected ", dims);
  if (view.type != DataType::kF32 && view.type != DataType::kBF16 && view.type != DataType::kF16) {
    detail::fail(ErrorCode::kUnsupported, folder_, ": tensor ", name, " is ", type_name(view.type),
                 ", expected f32, bf16 or f16");
  }
  return view;
}

std::vector<float> Checkpoint::floats(const std::string& name, const Dims& dims) const {
  const ConstTensorView view = tensor(name, dims);
  if (view.type == DataType::kBF16) return widened<BFloat16>(view);
  if (view.type == DataType::kF16) return widened<Float16>(view);
  const float* const from = view.as<float>();
  return std::vector<float>(from, from + view.count());
}

}  // namespace headway::engine
