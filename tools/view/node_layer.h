// Which layer of a model a node is of, as exporters name them.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>

namespace headway::tools {

/// The layer that a node is of by its name: the first number that stands alone in it, as in "/encoder/layer.3/MatMul";
/// -1 without any.
inline std::int64_t layer_of(const std::string& node) {
  const auto digit = [&](std::size_t i) { return std::isdigit(static_cast<unsigned char>(node[i])) != 0; };
  const auto word = [&](std::size_t i) { return std::isalpha(static_cast<unsigned char>(node[i])) != 0; };
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (!digit(i)) continue;
    const std::size_t begin = i;
    while (i < node.size() && digit(i)) ++i;
    const bool alone = (begin == 0 || !word(begin - 1)) && (i == node.size() || !word(i)) && i < node.size();
    if (alone && i - begin < 6) return std::stoll(node.substr(begin, i - begin));
  }
  return -1;
}

}  // namespace headway::tools
