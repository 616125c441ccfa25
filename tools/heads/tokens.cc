// See tokens.h.
#include "tools/heads/tokens.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"

namespace headway::tools {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) fail(ErrorCode::kIo, printable(path), ": cannot be read");
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> strings_of(const std::string& path, const std::string& text) {
  const nlohmann::json array = nlohmann::json::parse(text, nullptr, false);
  const bool strings = array.is_array() && std::all_of(array.begin(), array.end(), [](const nlohmann::json& element) {
                         return element.is_string();
                       });
  require(strings, printable(path), " is no JSON array of strings");
  return array.get<std::vector<std::string>>();
}

bool is_utf8(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string integer(const ConstTensorView& view, std::int64_t at) {
  return std::to_string(view.type == DataType::kI32 ? view.as<std::int32_t>()[at] : view.as<std::int64_t>()[at]);
}

}  // namespace

void TokenLists::add_file(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<std::string> tokens = path.ends_with(".json") ? strings_of(path, text) : lines_of(text);
  require(!tokens.empty(), printable(path), " has no tokens");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    require(is_utf8(tokens[i]), printable(path), ": token ", i, " is not UTF-8");
  }
  lists_.push_back({path, std::move(tokens)});
}

void TokenLists::add_model_inputs(const Graph& graph, const std::vector<ConstTensorView>& inputs, std::int64_t batch) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ConstTensorView& view = inputs[i];
    const bool integers = view.type == DataType::kI32 || view.type == DataType::kI64;
    if (!integers || view.rank() != 2 || batch >= view.dims[0]) continue;
    if (!graph.value_name(graph.inputs()[i].value).ends_with("input_ids")) continue;
    List list;
    for (std::int64_t s = 0; s < view.dims[1]; ++s) {
      list.tokens.push_back(integer(view, batch * view.strides[0] + s * view.strides[1]));
    }
    lists_.push_back(std::move(list));
  }
}

std::vector<std::string> TokenLists::of_length(std::int64_t length) {
  for (List& list : lists_) {
    if (static_cast<std::int64_t>(list.tokens.size()) != length) continue;
    list.used = true;
    return list.tokens;
  }
  return {};
}

HeadTokens TokenLists::of(const AttentionSpec& spec, const Positions& positions, const std::string& separator) {
  axes_.push_back(std::to_string(spec.query_len) + " queries × " + std::to_string(positions.keys) + " keys");
  HeadTokens tokens;
  tokens.separator = separator;
  tokens.keys = of_length(positions.keys);
  const std::int64_t first = positions.offset, end = first + spec.query_len;
  const auto keys = static_cast<std::int64_t>(tokens.keys.size());
  if (positions.defined && first >= 0 && end <= keys) {
    tokens.queries.assign(tokens.keys.begin() + first, tokens.keys.begin() + end);
  } else {
    tokens.queries = of_length(spec.query_len);
  }
  return tokens;
}

void TokenLists::check_used() const {
  for (const List& list : lists_) {
    require(list.used || list.path.empty(), printable(list.path), " has ", list.tokens.size(),
            " tokens, as many as no axis: attention is ", axes_.empty() ? "nowhere" : axes_.front());
  }
}

}  // namespace headway::tools
