// A size that need not be known: a whole number times named unknowns. Equal expressions are equal sizes, whatever the
// run brings; different ones may still be equal. Knows no tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headway::fusion {

struct Dim {
  std::int64_t factor = 0;
  std::vector<int> unknowns;  ///< sorted; may repeat

  Dim() = default;
  Dim(std::int64_t number) : factor(number) {}  // NOLINT: a number is a Dim
  bool is_number() const { return unknowns.empty(); }
  bool is(std::int64_t number) const { return is_number() && factor == number; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

/// Numbers come from files: too large ones wrap instead of being undefined.
inline std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }

inline Dim operator*(const Dim& a, const Dim& b) {
  Dim product(wrapped(static_cast<std::uint64_t>(a.factor) * static_cast<std::uint64_t>(b.factor)));
  if (product.factor == 0) return product;
  product.unknowns = a.unknowns;
  product.unknowns.insert(product.unknowns.end(), b.unknowns.begin(), b.unknowns.end());
  std::sort(product.unknowns.begin(), product.unknowns.end());
  return product;
}

/// a / b where b divides a as expressions; unknowns are taken as not 0.
inline std::optional<Dim> divided(const Dim& a, const Dim& b) {
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

/// For the names of unknowns made from others.
inline std::string text(const Dim& dim) {
  std::string result = std::to_string(dim.factor);
  for (const int unknown : dim.unknowns) result += "*" + std::to_string(unknown);
  return result;
}

/// Hands out unknowns; the same text gets the same one.
class Unknowns {
 public:
  /// `is_size`: never negative.
  Dim named(const std::string& text, bool is_size) {
    const auto [entry, fresh] = ids_.try_emplace(text, static_cast<int>(ids_.size()));
    if (fresh) sizes_.push_back(is_size);
    if (is_size) sizes_[static_cast<std::size_t>(entry->second)] = true;
    Dim dim(1);
    dim.unknowns.push_back(entry->second);
    return dim;
  }
  /// True when the expression cannot be negative.
  bool is_size(const Dim& dim) const {
    return dim.factor >= 0 && std::all_of(dim.unknowns.begin(), dim.unknowns.end(),
                                          [&](int unknown) { return sizes_[static_cast<std::size_t>(unknown)]; });
  }

  /// The smaller of two sizes.
  Dim smaller(const Dim& a, const Dim& b) {
    const Dim dim = named("min " + text(a) + " " + text(b), true);
    bounds_[dim.unknowns[0]] = {a, b};
    return dim;
  }
  /// True for smaller(larger, anything): where the two meet as axes they are equal, or both are 1.
  bool is_cut_of(const Dim& dim, const Dim& larger) const {
    if (dim.factor != 1 || dim.unknowns.size() != 1) return false;
    const auto found = bounds_.find(dim.unknowns[0]);
    return found != bounds_.end() && (found->second.first == larger || found->second.second == larger);
  }

 private:
  std::map<std::string, int> ids_;
  std::map<int, std::pair<Dim, Dim>> bounds_;
  std::vector<bool> sizes_;
};

}  // namespace headway::fusion
