// Labels to axes. MatMul is read as the Einsum it is.
#include "ops/fusion/attention/einsum.h"

#include <string>

namespace headway::fusion {
namespace {

/// "ab,cd->ef" without blanks, of single letters; nullopt for anything else.
struct Labels {
  std::string left, right, out;
};

std::optional<Labels> labels_of(const Node& node, Facts* facts) {
  if (node.inputs.size() != 2) return std::nullopt;
  if (node.op == "MatMul") {
    // A mask of unknown rank leaves the rank of the probabilities open; that of the values is the one that counts.
    const int rank = facts->rank(node.inputs[1]);
    if (facts->rank(node.inputs[0]) >= 0 && facts->rank(node.inputs[0]) != rank) return std::nullopt;
    if (rank == 3) return Labels{"bqd", "bdk", "bqk"};
    if (rank == 4) return Labels{"bhqd", "bhdk", "bhqk"};
    return std::nullopt;
  }
  if (node.op != "Einsum") return std::nullopt;
  std::string text;
  for (const char c : node.attributes.text("equation", "")) {
    if (c != ' ') text += c;
  }
  const std::size_t comma = text.find(',');
  const std::size_t arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return std::nullopt;
  Labels labels{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  for (const std::string* one : {&labels.left, &labels.right, &labels.out}) {
    if (one->size() != labels.left.size() || one->find_first_of(".,>-") != std::string::npos) return std::nullopt;
    for (std::size_t i = 0; i < one->size(); ++i) {
      if (one->find((*one)[i], i + 1) != std::string::npos) return std::nullopt;
    }
  }
  if (labels.left.size() < 3 || labels.left.size() > 4) return std::nullopt;
  return labels;
}

/// Where each of `wanted` stands in `labels`; nullopt when one does not.
std::optional<std::vector<std::int64_t>> axes_of(const std::string& labels, const std::string& wanted) {
  std::vector<std::int64_t> axes;
  for (const char c : wanted) {
    const std::size_t at = labels.find(c);
    if (at == std::string::npos) return std::nullopt;
    axes.push_back(static_cast<std::int64_t>(at));
  }
  return axes;
}

/// The one label that both operands have and the result has not.
std::optional<char> contracted(const Labels& labels) {
  std::optional<char> found;
  for (const char c : labels.left) {
    if (labels.out.find(c) != std::string::npos) continue;
    if (found || labels.right.find(c) == std::string::npos) return std::nullopt;
    found = c;
  }
  return found;
}

}  // namespace

std::optional<ScoreProduct> score_product(const Node& node, Facts* facts) {
  const auto labels = labels_of(node, facts);
  const auto depth = labels ? contracted(*labels) : std::nullopt;
  if (!depth) return std::nullopt;
  const std::string batch = labels->out.substr(0, labels->out.size() - 2);
  const char query = labels->out[labels->out.size() - 2];
  const char key = labels->out.back();
  const bool swapped = labels->left.find(query) == std::string::npos;
  const std::size_t q = swapped ? 1 : 0;
  const auto query_axes = axes_of(swapped ? labels->right : labels->left, batch + query + *depth);
  const auto key_axes = axes_of(swapped ? labels->left : labels->right, batch + key + *depth);
  if (!query_axes || !key_axes) return std::nullopt;
  ScoreProduct product;
  product.query.value = node.inputs[q];
  product.query.axes = *query_axes;
  product.key.value = node.inputs[1 - q];
  product.key.axes = *key_axes;
  return product;
}

std::optional<ContextProduct> context_product(const Node& node, Facts* facts) {
  auto labels = labels_of(node, facts);
  if (labels && node.op == "MatMul") {
    labels = labels->left.size() == 3 ? Labels{"bqk", "bkd", "bqd"} : Labels{"bhqk", "bhkd", "bhqd"};
  }
  const auto keys = labels ? contracted(*labels) : std::nullopt;
  if (!keys || labels->left.back() != *keys) return std::nullopt;
  const std::string batch = labels->left.substr(0, labels->left.size() - 2);
  const char query = labels->left[labels->left.size() - 2];
  char width = 0;
  for (const char c : labels->right) {
    if (labels->left.find(c) == std::string::npos) width = c;
  }
  if (width == 0) return std::nullopt;
  const auto value_axes = axes_of(labels->right, batch + *keys + width);
  const auto out_axes = axes_of(labels->out, batch + query + width);
  if (!value_axes || !out_axes) return std::nullopt;
  ContextProduct product;
  product.value.value = node.inputs[1];
  product.value.axes = *value_axes;
  product.value.takes_scale = false;
  product.out_axes = *out_axes;
  return product;
}

}  // namespace headway::fusion
