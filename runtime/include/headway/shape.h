// What is known of a value when its operator infers it: element type, dims that may be expressions of unknown sizes,
// and the elements of short integer lists, which is what shape arithmetic is made of. Numbers are the special case and
// allocate nothing of their own. Knows no operator and no graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "headway/export.h"
#include "headway/tensor.h"

namespace headway {

/// A whole number times named unknowns. Equal expressions are equal sizes, whatever the run brings; different ones may
/// still be equal.
struct Dim {
  std::int64_t factor = 0;
  std::vector<int> unknowns;  ///< sorted; may repeat

  Dim() = default;
  Dim(std::int64_t number) : factor(number) {}  // NOLINT: a number is a Dim
  bool is_number() const { return unknowns.empty(); }
  bool is(std::int64_t number) const { return is_number() && factor == number; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

using DimList = std::vector<Dim>;

/// False when both are numbers and differ: only then they cannot be equal.
inline bool may_equal(const Dim& a, const Dim& b) { return !a.is_number() || !b.is_number() || a.factor == b.factor; }
/// False when the ranks differ or two dims cannot be equal.
HEADWAY_API bool may_equal(const DimList& a, const DimList& b);
HEADWAY_API bool all_numbers(const DimList& dims);

/// Numbers come from files: a product that does not fit wraps instead of being undefined.
HEADWAY_API Dim operator*(const Dim& a, const Dim& b);
/// The product of all; throws kInvalidArgument as element_count() does where all are numbers.
HEADWAY_API Dim count_of(const DimList& dims);
/// a / b where b divides a as expressions; unknowns are taken as not 0.
HEADWAY_API std::optional<Dim> divided(const Dim& a, const Dim& b);
/// For the names of unknowns made from others.
HEADWAY_API std::string text(const Dim& dim);

/// "12", or "?" for what is not known.
HEADWAY_API std::ostream& operator<<(std::ostream& out, const Dim& dim);
/// "[?, 12, 49]"
HEADWAY_API std::ostream& operator<<(std::ostream& out, const DimList& dims);

/// Throws kInvalidArgument when there are more than kMaxRank; all must be numbers.
HEADWAY_API Dims number_dims(const DimList& dims);
inline DimList dim_list(const Dims& dims) { return DimList(dims.begin(), dims.end()); }

/// Hands out unknowns; the same text gets the same one.
class HEADWAY_API Unknowns {
 public:
  /// `is_size`: never negative.
  Dim named(const std::string& text, bool is_size);
  /// True when the expression cannot be negative.
  bool is_size(const Dim& dim) const;
  /// The smaller of two sizes.
  Dim smaller(const Dim& a, const Dim& b);
  /// True for smaller(larger, anything): where the two meet as axes they are equal, or both are 1.
  bool is_cut_of(const Dim& dim, const Dim& larger) const;

 private:
  std::map<std::string, int> ids_;
  std::map<int, std::pair<Dim, Dim>> bounds_;
  std::vector<bool> sizes_;
};

/// The longest list whose elements are followed.
inline constexpr std::int64_t kMaxElements = 16;

/// What is known of a value.
struct ValueInfo {
  std::optional<DataType> type;
  std::optional<DimList> dims;      ///< absent: rank unknown
  std::optional<DimList> elements;  ///< of integers and bools of rank 0 or 1, at most kMaxElements; bools are 0 or 1
  bool present = true;              ///< false: an optional input that was left out, or an output that is not made

  int rank() const { return dims ? static_cast<int>(dims->size()) : -1; }
};

}  // namespace headway
