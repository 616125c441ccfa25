// Operators by name.
#include "headway/operator.h"
#include "runtime/base/check.h"

namespace headway {

void Registry::add(std::unique_ptr<Operator> op) {
  require(op != nullptr, "the operator to register is null");
  std::string key(op->name());
  require(!key.empty(), "the operator to register has no name");
  require(operators_.count(key) == 0, "operator '", key, "' is registered already");
  operators_.emplace(std::move(key), std::move(op));
}

const Operator* Registry::find(std::string_view name) const {
  const auto found = operators_.find(name);
  return found == operators_.end() ? nullptr : found->second.get();
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  names.reserve(operators_.size());
  for (const auto& entry : operators_) names.push_back(entry.first);
  return names;
}

}  // namespace headway
