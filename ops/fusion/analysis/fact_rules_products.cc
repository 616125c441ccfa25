// Rules of products and of attention operators.
#include "ops/fusion/analysis/fact_rules.h"

namespace headway::fusion {

void FactRules::matmul(Fact* out) {
  const auto& a = in(0).dims;
  const auto& b = in(1).dims;
  if (!a || !b || a->size() < 2 || b->size() < 2) return;
  out->dims = broadcast(DimList(a->begin(), a->end() - 2), DimList(b->begin(), b->end() - 2));
  out->dims->push_back((*a)[a->size() - 2]);
  out->dims->push_back(b->back());
}

void FactRules::gemm(Fact* out) {
  const auto& a = in(0).dims;
  const auto& b = in(1).dims;
  if (!a || !b || a->size() != 2 || b->size() != 2) return;
  const bool ta = node_.attributes.integer("transA", 0) != 0;
  const bool tb = node_.attributes.integer("transB", 0) != 0;
  out->dims = DimList{(*a)[ta ? 1 : 0], (*b)[tb ? 0 : 1]};
}

void FactRules::linear(Fact* out) {
  out->dims = in(0).dims;
  const auto& w = in(1).dims;
  if (!out->dims || out->dims->empty() || !w || w->size() != 2) return out->dims.reset();
  out->dims->back() = (*w)[1];
}

/// Axis i of [B, H, S, D] is axis axes[i] of the tensor.
void FactRules::native_attention(Fact* out) {
  const int rank = in(0).rank();
  if (rank != 3 && rank != 4) return;
  const auto axis = [&](const char* key, std::size_t i) {
    const std::vector<std::int64_t> axes = node_.attributes.integers(key);
    return axes.size() == 4 ? static_cast<std::size_t>(axes[i]) : i;
  };
  const auto at = [&](std::size_t input, const char* key, std::size_t i) {
    return facts_.dim(node_.inputs[input], static_cast<int>(axis(key, i)));
  };
  out->dims = unknown_dims(rank);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    const bool width = i + 1 == static_cast<std::size_t>(rank);
    const auto dim = width ? at(2, "value_axes", i) : at(0, "query_axes", i);
    if (dim && (width || !dim->is(1))) (*out->dims)[axis("out_axes", i)] = *dim;
  }
}

/// Out as query, but as wide as value; packed heads are as wide as all heads together.
void FactRules::attention(Fact* out) {
  if (node_.op == "Attention") return native_attention(out);
  const auto& q = in(0).dims;
  const auto& v = in(2).dims;
  if (!q || !v || q->size() != v->size()) return;
  out->dims = q;
  if (q->size() == 4) out->dims->back() = v->back();
  if (q->size() == 3) {
    const Dim heads(node_.attributes.integer("q_num_heads", 0));
    const auto width = divided(v->back(), Dim(node_.attributes.integer("kv_num_heads", 0)));
    out->dims->back() = width ? *width * heads : unknown("d", 2);
  }
}

/// [B, S, N·Hv], whatever form the heads came in.
void FactRules::microsoft_attention(Fact* out) {
  const auto& q = in(0).dims;
  if (!q || q->size() < 3) return;
  std::optional<Dim> width;
  if (node_.op == "com.microsoft.Attention") {
    const std::vector<std::int64_t> sizes = node_.attributes.integers("qkv_hidden_sizes");
    const auto columns = facts_.dim(node_.inputs[1], 1);
    if (sizes.size() == 3) {
      width = Dim(sizes[2]);
    } else if (columns) {
      width = divided(*columns, 3);
    }
  } else if (has(2)) {
    const auto& v = in(2).dims;
    if (v && v->size() == 3) width = v->back();
    if (v && v->size() == 4) width = (*v)[1] * v->back();
  } else {
    width = q->size() == 5 ? (*q)[2] * q->back() : q->back();
  }
  out->dims = DimList{(*q)[0], (*q)[1], width ? *width : unknown("d", 2)};
}

}  // namespace headway::fusion
