// Rules of shape arithmetic and of operators that take a shape: dims become elements and elements dims again.
#include <algorithm>
#include <limits>

#include "ops/fusion/analysis/fact_rules.h"

namespace headway::fusion {
namespace {

/// An axis counted from the front; nullopt when there is no such axis.
std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

}  // namespace

void FactRules::shape(Fact* out) {
  out->type = DataType::kI64;
  const auto& dims = in(0).dims;
  if (node_.op == "Size") {
    out->dims.emplace();
    if (!dims) return;
    Dim product(1);
    for (const Dim& dim : *dims) product = product * dim;
    out->elements = DimList{product};
    return;
  }
  if (!dims) {
    out->dims = unknown_dims(1);
    return;
  }
  const auto rank = static_cast<std::int64_t>(dims->size());
  const auto bound = [&](const char* key, std::int64_t otherwise) {
    const std::int64_t at = node_.attributes.integer(key, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = bound("start", 0);
  const std::int64_t end = std::max(start, bound("end", rank));
  out->elements = DimList(dims->begin() + start, dims->begin() + end);
  out->dims = DimList{Dim(end - start)};
}

void FactRules::reshape(Fact* out) {
  DimList wanted;
  if (has(1)) {
    if (!in(1).elements) {
      const auto& count = in(1).dims;
      if (count && count->size() == 1 && (*count)[0].is_number() && (*count)[0].factor <= 8) {
        out->dims = unknown_dims(static_cast<int>((*count)[0].factor));
      }
      return;
    }
    wanted = *in(1).elements;
  } else {
    for (const std::int64_t dim : node_.attributes.integers("dims")) wanted.emplace_back(dim);
  }
  const auto& from = in(0).dims;
  const bool copies = node_.attributes.integer("allowzero", 0) == 0;
  DimList dims;
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].is(0) && copies) {
      dims.push_back(from && i < from->size() ? (*from)[i] : unknown("d", static_cast<int>(i)));
    } else if (wanted[i].is(-1)) {
      inferred = i;
      dims.emplace_back(1);
    } else {
      dims.push_back(facts_.is_size(wanted[i]) ? wanted[i] : unknown("d", static_cast<int>(i)));
    }
  }
  if (inferred) {
    std::optional<Dim> rest;
    if (from) {
      Dim all(1);
      for (const Dim& dim : *from) all = all * dim;
      Dim given(1);
      for (const Dim& dim : dims) given = given * dim;
      rest = divided(all, given);
    }
    dims[*inferred] = rest ? *rest : unknown("d", static_cast<int>(*inferred));
  }
  out->dims = std::move(dims);
  if (out->dims->size() <= 1) out->elements = in(0).elements;
}

void FactRules::flatten(Fact* out) {
  if (!in(0).dims) {
    out->dims = unknown_dims(2);
    return;
  }
  std::int64_t axis = node_.attributes.integer("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(in(0).dims->size());
  DimList dims{Dim(1), Dim(1)};
  for (std::size_t i = 0; i < in(0).dims->size(); ++i) {
    Dim& side = dims[static_cast<std::int64_t>(i) < axis ? 0 : 1];
    side = side * (*in(0).dims)[i];
  }
  out->dims = std::move(dims);
}

void FactRules::squeeze(Fact* out) {
  out->elements = in(0).elements;
  const auto axes = integers(1, "axes");
  if (!in(0).dims || !axes) return;
  std::vector<bool> gone(in(0).dims->size());
  for (std::size_t i = 0; i < gone.size() && axes->empty(); ++i) {
    if (!(*in(0).dims)[i].is_number()) return;  // without axes every 1 goes, and that may be one
    gone[i] = (*in(0).dims)[i].is(1);
  }
  for (const std::int64_t one : *axes) {
    const auto axis = axis_of(one, gone.size());
    if (!axis) return;
    gone[*axis] = true;
  }
  out->dims.emplace();
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) out->dims->push_back((*in(0).dims)[i]);
  }
}

void FactRules::unsqueeze(Fact* out) {
  const auto axes = integers(1, "axes");
  if (!in(0).dims || !axes) return;
  const std::size_t rank = in(0).dims->size() + axes->size();
  std::vector<bool> fresh(rank);
  for (const std::int64_t one : *axes) {
    const auto axis = axis_of(one, rank);
    if (!axis) return;
    fresh[*axis] = true;
  }
  out->dims.emplace();
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!fresh[i] && next >= in(0).dims->size()) return out->dims.reset();
    out->dims->push_back(fresh[i] ? Dim(1) : (*in(0).dims)[next++]);
  }
  if (rank <= 1) out->elements = in(0).elements;
}

void FactRules::concat(Fact* out) {
  const std::optional<std::size_t> axis =
      in(0).dims ? axis_of(node_.attributes.integer("axis", 0), in(0).dims->size()) : std::nullopt;
  if (!axis) return;
  DimList dims = *in(0).dims;
  DimList elements;
  bool known = in(0).dims->size() == 1;
  std::string sum = "sum";
  bool numbers = true;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    const Fact& one = in(i);
    known = known && one.elements.has_value();
    if (known) elements.insert(elements.end(), one.elements->begin(), one.elements->end());
    if (!one.dims || one.dims->size() != dims.size()) return;
    const Dim& part = (*one.dims)[*axis];
    numbers = numbers && part.is_number();
    total = wrapped(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(part.factor));
    sum += " " + text(part);
  }
  dims[*axis] = numbers ? Dim(total) : unknowns_.named(sum, true);
  out->dims = std::move(dims);
  if (known && elements.size() <= 16) out->elements = std::move(elements);
}

void FactRules::split(Fact* out) {
  const std::size_t parts = node_.outputs.size();
  const auto& from = in(0);
  const auto axis = from.dims ? axis_of(node_.attributes.integer("axis", 0), from.dims->size()) : std::nullopt;
  if (!axis) {
    more_.resize(parts - 1);
    for (Fact& one : more_) one.type = from.type;
    return;
  }
  const auto sizes = integers(1, "split");
  std::vector<Fact> all(parts);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    all[i].type = from.type;
    all[i].dims = from.dims;
    Dim& size = (*all[i].dims)[*axis];
    if (sizes && sizes->size() == parts) {
      size = Dim((*sizes)[i]);
    } else {
      const auto even = divided(size, Dim(static_cast<std::int64_t>(parts)));
      const bool listed = has(1) || node_.attributes.has("split");
      size = even && !listed ? *even : unknown("d", static_cast<int>(i));
    }
    if (from.elements && size.is_number() && begin + static_cast<std::size_t>(size.factor) <= from.elements->size()) {
      const auto at = from.elements->begin() + static_cast<std::ptrdiff_t>(begin);
      all[i].elements = DimList(at, at + size.factor);
      begin += static_cast<std::size_t>(size.factor);
    }
  }
  *out = all[0];
  more_.assign(all.begin() + 1, all.end());
}

/// Elements [0, end) of an axis where the end or the axis is not a number.
void FactRules::cut(std::size_t i, std::size_t axis, std::int64_t step, Dim* size) {
  const auto& starts = in(1).elements;
  const auto& ends = in(2).elements;
  const bool from_start = step == 1 && starts && ends && i < starts->size() && i < ends->size() && (*starts)[i].is(0);
  if (from_start && (*ends)[i].is_number() && (*ends)[i].factor >= std::numeric_limits<int>::max()) return;
  if (from_start && facts_.is_size((*ends)[i])) {
    *size = unknowns_.smaller((*ends)[i], *size);
  } else {
    *size = unknown("d", static_cast<int>(axis));
  }
}

void FactRules::slice(Fact* out) {
  const auto& from = in(0);
  const auto starts = integers(1, "starts");
  const auto ends = integers(2, "ends");
  if (!from.dims) return;
  const auto axes = integers(3, "axes");
  const auto steps = integers(4, "steps");
  DimList dims = *from.dims;
  if (!axes) {
    out->dims = unknown_dims(static_cast<int>(dims.size()));
    return;
  }
  const std::size_t count = !axes->empty() ? axes->size() : starts ? starts->size() : dims.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = axis_of(axes->empty() ? static_cast<std::int64_t>(i) : (*axes)[i], dims.size());
    if (!axis) return;
    Dim& size = dims[*axis];
    const bool numbers = starts && ends && steps && i < starts->size() && i < ends->size();
    std::int64_t step = !numbers || steps->size() <= i ? 1 : (*steps)[i];
    if (!numbers || !size.is_number() || step <= 0) {
      cut(i, *axis, step, &size);
      continue;
    }
    const std::int64_t n = size.factor;
    const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + n : at, 0, n); };
    const std::int64_t begin = bound((*starts)[i]);
    const std::int64_t end = std::max(begin, bound((*ends)[i]));
    step = std::min(step, n + 1);
    size = Dim((end - begin + step - 1) / step);
    if (from.elements && dims.size() == 1) {
      DimList elements;
      for (std::int64_t at = begin; at < end; at += step) {
        elements.push_back((*from.elements)[static_cast<std::size_t>(at)]);
      }
      out->elements = std::move(elements);
    }
  }
  out->dims = std::move(dims);
}

void FactRules::gather(Fact* out) {
  const auto& from = in(0);
  const auto& indices = in(1);
  const auto axis = from.dims ? axis_of(node_.attributes.integer("axis", 0), from.dims->size()) : std::nullopt;
  if (axis && indices.dims) {
    DimList dims(from.dims->begin(), from.dims->begin() + static_cast<std::ptrdiff_t>(*axis));
    dims.insert(dims.end(), indices.dims->begin(), indices.dims->end());
    dims.insert(dims.end(), from.dims->begin() + static_cast<std::ptrdiff_t>(*axis) + 1, from.dims->end());
    out->dims = std::move(dims);
  }
  if (!from.elements || !indices.elements || !from.dims || from.dims->size() != 1) return;
  DimList elements;
  for (const Dim& index : *indices.elements) {
    const auto at = index.is_number() ? axis_of(index.factor, from.elements->size()) : std::nullopt;
    if (!at) return;
    elements.push_back((*from.elements)[*at]);
  }
  out->elements = std::move(elements);
}

}  // namespace headway::fusion
