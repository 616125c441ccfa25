// Typed look-ups of a node's attributes. A wrong type is refused, never converted.
#include <type_traits>

#include "headway/operator.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, std::int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, float>) return "a float";
  if constexpr (std::is_same_v<T, std::string>) return "a string";
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) return "a list of integers";
  if constexpr (std::is_same_v<T, std::vector<float>>) return "a list of floats";
  if constexpr (std::is_same_v<T, NeverHeld>) return "nothing";
}

const char* type_name(const Attribute& attribute) {
  return std::visit([](const auto& value) { return type_name<std::decay_t<decltype(value)>>(); }, attribute);
}

/// Null when the key is not there.
template <class T>
const T* find(const std::map<std::string, Attribute>& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  require(value != nullptr, "attribute '", key, "' is ", type_name(found->second), ", expected ", type_name<T>());
  return value;
}

template <class T>
T find_or(const std::map<std::string, Attribute>& values, const std::string& key, const T& otherwise) {
  const T* value = find<T>(values, key);
  return value ? *value : otherwise;
}

}  // namespace

std::int64_t Attributes::integer(const std::string& key) const {
  const auto* value = find<std::int64_t>(values_, key);
  require(value != nullptr, "attribute '", key, "' is missing, expected an integer");
  return *value;
}

std::int64_t Attributes::integer(const std::string& key, std::int64_t otherwise) const {
  return find_or(values_, key, otherwise);
}

float Attributes::real(const std::string& key, float otherwise) const { return find_or(values_, key, otherwise); }

std::string Attributes::text(const std::string& key, const std::string& otherwise) const {
  return find_or(values_, key, otherwise);
}

std::vector<std::int64_t> Attributes::integers(const std::string& key,
                                               const std::vector<std::int64_t>& otherwise) const {
  return find_or(values_, key, otherwise);
}

}  // namespace headway
