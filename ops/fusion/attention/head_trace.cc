// The walk: what an axis of a result holds says what the axes of its source hold.
#include "ops/fusion/attention/head_trace.h"

#include <utility>

namespace headway::fusion {
namespace {

enum Role { kBatch, kHead, kSequence, kWidth, kChosen };

/// A part of an axis: one of the axes of [B, H, S, D], or an index that was chosen.
struct Part {
  Role role;
  Dim size;
  std::int64_t index = 0;  ///< of kChosen
};
using Axis = std::vector<Part>;  // outer part first
using Axes = std::vector<Axis>;

/// The same elements in the same order under other dims. nullopt where an axis would hold a piece of a part.
std::optional<Axes> regrouped(const Axes& axes, const DimList& dims) {
  std::vector<Part> parts;
  for (const Axis& axis : axes) parts.insert(parts.end(), axis.begin(), axis.end());
  Axes result;
  std::size_t next = 0;
  // A size that an exporter took for a constant, behind the unknown that it was: where all others are equal, so are
  // these, since both sides have as many elements.
  bool one_is_left_over = false;
  for (const Dim& dim : dims) {
    Axis axis;
    Dim size(1);
    while (size != dim || (axis.empty() && next < parts.size() && parts[next].size.is(1))) {
      const bool whole = axis.empty() && next < parts.size();
      if (whole && !one_is_left_over && !dim.is_number() && parts[next].size.is_number()) {
        one_is_left_over = true;
        axis.push_back(parts[next++]);
        break;
      }
      if (next == parts.size()) return std::nullopt;
      size = size * parts[next].size;
      axis.push_back(parts[next++]);
    }
    result.push_back(std::move(axis));
  }
  return next == parts.size() ? std::optional(result) : std::nullopt;
}

class Trace {
 public:
  Trace(const Draft& draft, Facts* facts) : draft_(draft), facts_(*facts) {}

  std::optional<TracedHeads> run(ValueId value, Axes axes) {
    constexpr int kLongest = 16;
    for (int steps = 0; steps < kLongest; ++steps) {
      if (auto found = at_projection(value, axes); found && read_lengths(value, axes, &*found)) return found;
      if (!step(&value, &axes)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// To the source of the node that makes the value.
  bool step(ValueId* value, Axes* axes) {
    const int index = draft_.producer(*value);
    if (index < 0 || !draft_.node(index).guards.empty()) return false;
    const Node& node = draft_.node(index);
    const auto& dims = facts_.of(node.inputs[0]).dims;
    if (!dims || node.outputs.size() != 1) return false;
    std::optional<Axes> source;
    if (node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze") source = regrouped(*axes, *dims);
    if (node.op == "Transpose") source = transposed(node, *axes);
    if (node.op == "Gather") source = chosen(node, *axes, *dims);
    if (!source) return false;
    *axes = std::move(*source);
    *value = node.inputs[0];
    return true;
  }

  static std::optional<Axes> transposed(const Node& node, const Axes& axes) {
    const std::vector<std::int64_t> perm = node.attributes.integers("perm");
    if (perm.size() != axes.size()) return std::nullopt;
    Axes source(axes.size());
    for (std::size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] < 0 || perm[i] >= static_cast<std::int64_t>(axes.size())) return std::nullopt;
      source[static_cast<std::size_t>(perm[i])] = axes[i];
    }
    return source;
  }

  /// One index of an axis, which is gone below.
  std::optional<Axes> chosen(const Node& node, const Axes& axes, const DimList& dims) {
    const auto number = facts_.scalar(node.inputs[1]);
    if (!number || facts_.rank(node.inputs[1]) != 0 || axes.size() + 1 != dims.size()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t axis = node.attributes.integer("axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const Dim& size = dims[static_cast<std::size_t>(axis)];
    auto index = static_cast<std::int64_t>(*number);
    if (!size.is_number() || index < -size.factor || index >= size.factor) return std::nullopt;
    if (index < 0) index += size.factor;
    Axes source = axes;
    source.insert(source.begin() + axis, Axis{Part{kChosen, size, index}});
    return source;
  }

  static bool is(const Axis& axis, Role role) { return axis.size() == 1 && axis[0].role == role; }

  std::optional<TracedHeads> at_projection(ValueId value, const Axes& axes) {
    if (axes.size() != 3) return std::nullopt;
    TracedHeads traced;
    traced.batch_first = is(axes[0], kBatch) && is(axes[1], kSequence);
    if (!traced.batch_first && !(is(axes[0], kSequence) && is(axes[1], kBatch))) return std::nullopt;
    // Chosen indices first, then heads, then their columns: only so they lie side by side.
    const Axis& columns = axes[2];
    const std::size_t n = columns.size();
    if (n < 2 || columns[n - 2].role != kHead || columns[n - 1].role != kWidth) return std::nullopt;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i + 2 < n; ++i) {
      if (columns[i].role != kChosen) return std::nullopt;
      begin = begin * columns[i].size.factor + columns[i].index;
    }
    if (!columns[n - 2].size.is_number() || !columns[n - 1].size.is_number()) return std::nullopt;
    traced.heads = columns[n - 2].size.factor;
    traced.width = columns[n - 1].size.factor;
    const auto projection = read_projection(draft_, &facts_, value);
    if (!projection) return std::nullopt;
    traced.projection = *projection;
    const std::int64_t own = traced.heads * traced.width;
    if ((begin + 1) * own > projection->columns) return std::nullopt;
    traced.projection.begin += begin * own;
    traced.projection.columns = own;
    return traced;
  }

  bool read_lengths(ValueId tokens, const Axes& axes, TracedHeads* traced) {
    const DimList& dims = *facts_.of(tokens).dims;
    for (std::size_t i = 0; i < 2; ++i) {
      const Part& part = axes[i][0];
      if (part.size == dims[i]) continue;
      if (!part.size.is_number() || dims[i].is_number()) return false;
      (part.role == kBatch ? traced->only_batch : traced->only_length) = part.size.factor;
    }
    return true;
  }

  const Draft& draft_;
  Facts& facts_;
};

}  // namespace

std::optional<TracedHeads> trace_heads(const Draft& draft, Facts* facts, ValueId value,
                                       const std::vector<std::int64_t>& axes) {
  const auto& dims = facts->of(value).dims;
  if (!dims || dims->size() != 4 || axes.size() != 4) return std::nullopt;
  Axes parts(4);
  for (const Role role : {kBatch, kHead, kSequence, kWidth}) {
    if (axes[role] < 0 || axes[role] > 3) return std::nullopt;
    const auto axis = static_cast<std::size_t>(axes[role]);
    parts[axis] = {Part{role, (*dims)[axis]}};
  }
  return Trace(draft, facts).run(value, std::move(parts));
}

}  // namespace headway::fusion
