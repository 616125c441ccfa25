// Arithmetic of sizes that need not be known.
#include "headway/shape.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace headway {
namespace {

std::int64_t wrapped_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace

bool may_equal(const DimList& a, const DimList& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const Dim& x, const Dim& y) { return may_equal(x, y); });
}

bool all_numbers(const DimList& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_number(); });
}

Dim operator*(const Dim& a, const Dim& b) {
  Dim product(wrapped_product(a.factor, b.factor));
  if (product.factor == 0) return product;
  product.unknowns = a.unknowns;
  product.unknowns.insert(product.unknowns.end(), b.unknowns.begin(), b.unknowns.end());
  std::sort(product.unknowns.begin(), product.unknowns.end());
  return product;
}

Dim count_of(const DimList& dims) {
  if (all_numbers(dims)) return element_count(number_dims(dims));
  Dim product(1);
  for (const Dim& dim : dims) product = product * dim;
  return product;
}

std::optional<Dim> divided(const Dim& a, const Dim& b) {
  if (b.factor <= 0 || a.factor % b.factor != 0) return std::nullopt;
  Dim quotient(a.factor / b.factor);
  quotient.unknowns = a.unknowns;
  for (const int unknown : b.unknowns) {
    const auto found = std::find(quotient.unknowns.begin(), quotient.unknowns.end(), unknown);
    if (found == quotient.unknowns.end()) return std::nullopt;
    quotient.unknowns.erase(found);
  }
  return quotient;
}

std::string text(const Dim& dim) {
  std::string result = std::to_string(dim.factor);
  for (const int unknown : dim.unknowns) result += "*" + std::to_string(unknown);
  return result;
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  if (dim.is_number()) return out << dim.factor;
  return out << '?';
}

std::ostream& operator<<(std::ostream& out, const DimList& dims) {
  out << '[';
  for (std::size_t i = 0; i < dims.size(); ++i) out << (i == 0 ? "" : ", ") << dims[i];
  return out << ']';
}

Dims number_dims(const DimList& dims) {
  require(dims.size() <= kMaxRank, "rank is ", dims.size(), ", at most ", kMaxRank, " is supported");
  Dims numbers;
  for (const Dim& dim : dims) numbers.push_back(dim.factor);
  return numbers;
}

Dim Unknowns::named(const std::string& text, bool is_size) {
  const auto [entry, fresh] = ids_.try_emplace(text, static_cast<int>(ids_.size()));
  if (fresh) sizes_.push_back(is_size);
  if (is_size) sizes_[static_cast<std::size_t>(entry->second)] = true;
  Dim dim(1);
  dim.unknowns.push_back(entry->second);
  return dim;
}

bool Unknowns::is_size(const Dim& dim) const {
  return dim.factor >= 0 && std::all_of(dim.unknowns.begin(), dim.unknowns.end(),
                                        [&](int unknown) { return sizes_[static_cast<std::size_t>(unknown)]; });
}

Dim Unknowns::smaller(const Dim& a, const Dim& b) {
  const Dim dim = named("min " + text(a) + " " + text(b), true);
  bounds_[dim.unknowns[0]] = {a, b};
  return dim;
}

bool Unknowns::is_cut_of(const Dim& dim, const Dim& larger) const {
  if (dim.factor != 1 || dim.unknowns.size() != 1) return false;
  const auto found = bounds_.find(dim.unknowns[0]);
  return found != bounds_.end() && (found->second.first == larger || found->second.second == larger);
}

}  // namespace headway
