// Reads cases that torch computed.
#include "tests/support/torch_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

namespace headway::testing {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TorchCase::TorchCase(const SafetensorsFile& file, int id) : file_(file) {
  char prefix[16];
  std::snprintf(prefix, sizeof prefix, "%03d.", id);
  prefix_ = prefix;
}

ConstTensorView TorchCase::tensor(const std::string& name) const {
  return has(name) ? file_.tensor(prefix_ + name) : ConstTensorView();
}

double worst_difference(const ConstTensorView& got, const ConstTensorView& expected) {
  if (got.count() != expected.count()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double value = got.type == DataType::kF64 ? got.as<double>()[i] : static_cast<double>(got.as<float>()[i]);
    const auto exact = static_cast<double>(expected.as<float>()[i]);
    if (std::isnan(value) && std::isnan(exact)) continue;
    const double difference = std::abs(value - exact) / (1 + std::abs(exact));
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
  }
  return worst;
}

}  // namespace headway::testing
