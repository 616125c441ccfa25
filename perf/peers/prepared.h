// What the worker has prepared: one thing to compute, again and again. Knows neither the protocol nor what it is.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace headway::perf {

class Prepared {
 public:
  virtual ~Prepared() = default;
  /// "name", "ran", "explain" and what else the report may want.
  virtual nlohmann::json variant() const = 0;
  virtual void run() = 0;
  /// Runs into memory full of NaN and writes the result as "out".
  virtual void write_output(const std::string& path) = 0;
};

/// An attention core or layer: a shape of kind "core" or "layer".
std::unique_ptr<Prepared> prepare_attention(const nlohmann::json& request);
/// A model file: a shape of kind "model".
std::unique_ptr<Prepared> prepare_model(const nlohmann::json& request);

}  // namespace headway::perf
