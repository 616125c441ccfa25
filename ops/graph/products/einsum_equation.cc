// Parsing: letters are labels, "..." stands for the axes left over, right-aligned; without "->" the result has the
// ellipsis and then the labels that appear once, in alphabetical order.
#include "ops/graph/products/einsum_equation.h"

#include <algorithm>
#include <map>

#include "runtime/base/check.h"

namespace headway {
namespace {

// An axis' name: a letter, or for the axis i of an ellipsis, counted from its right end, kEllipsis + i.
constexpr int kEllipsis = 256;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The names of one term whose ellipsis stands for `ellipsis_rank` axes.
std::vector<int> names_of(const char* op, const std::string& term, int ellipsis_rank) {
  std::vector<int> names;
  bool seen = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      names.push_back(term[i]);
      continue;
    }
    require(!seen && term.compare(i, 3, "...") == 0, op, " equation has '", term[i], "' in term '", term,
            "', expected letters and one ellipsis");
    seen = true;
    i += 2;
    for (int a = ellipsis_rank - 1; a >= 0; --a) names.push_back(kEllipsis + a);
  }
  return names;
}

int letters_in(const std::string& term) { return static_cast<int>(std::count_if(term.begin(), term.end(), is_letter)); }

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

/// Names by order of first use.
struct Names {
  std::vector<int> order;
  std::map<int, EinsumLabel> labels;
};

void add_operand(const char* op, const std::vector<int>& names, const Dims& dims, std::size_t operand,
                 std::size_t operands, Names* all) {
  require(names.size() == static_cast<std::size_t>(dims.rank()), op, " input ", operand, " has rank ", dims.rank(),
          ", expected ", names.size(), " as its term of the equation");
  const Dims strides = contiguous_strides(dims);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int name = names[i];
    const auto axis = static_cast<int>(i);
    const bool fresh = all->labels.count(name) == 0;
    EinsumLabel& label = all->labels[name];
    if (fresh) {
      all->order.push_back(name);
      label.strides.assign(operands, 0);
      label.present.assign(operands, false);
      label.size = dims[axis];
    }
    const bool broadcasts = name >= kEllipsis && (dims[axis] == 1 || label.size == 1);
    require(dims[axis] == label.size || broadcasts, op, " input ", operand, " axis ", i, " is ", dims[axis],
            ", expected ", label.size, " as another axis of the same label");
    if (label.size == 1) label.size = dims[axis];
    label.present[operand] = true;
    // A label that is there twice walks the diagonal; one of size 1 does not move.
    if (dims[axis] != 1) label.strides[operand] += strides[axis];
  }
}

std::vector<int> implicit_result(const std::vector<std::vector<int>>& terms, int ellipsis_rank) {
  std::map<int, int> uses;
  for (const auto& term : terms) {
    for (const int name : term) ++uses[name];
  }
  std::vector<int> names;
  for (int a = ellipsis_rank - 1; a >= 0; --a) names.push_back(kEllipsis + a);
  for (const auto& [name, count] : uses) {
    if (name < kEllipsis && count == 1) names.push_back(name);
  }
  return names;
}

}  // namespace

EinsumEquation parse_einsum(const char* op, const std::string& equation, std::span<const Dims> operands) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  require(terms.size() == operands.size(), op, " equation '", equation, "' has ", terms.size(), " terms, expected ",
          operands.size(), " as inputs");
  int ellipsis_rank = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].find("...") == std::string::npos) continue;
    ellipsis_rank = std::max(ellipsis_rank, operands[i].rank() - letters_in(terms[i]));
  }
  Names all;
  std::vector<std::vector<int>> names;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const int own = std::max(0, operands[i].rank() - letters_in(terms[i]));
    names.push_back(names_of(op, terms[i], own));
    add_operand(op, names.back(), operands[i], i, operands.size(), &all);
  }
  const std::vector<int> result = arrow == std::string::npos ? implicit_result(names, ellipsis_rank)
                                                             : names_of(op, text.substr(arrow + 2), ellipsis_rank);
  EinsumEquation parsed;
  for (const int name : result) {
    const auto found = all.labels.find(name);
    require(found != all.labels.end() && !found->second.in_result, op, " result of '", equation, "' has label '",
            static_cast<char>(name < kEllipsis ? name : '.'), "' that no input has, or has it twice");
    found->second.in_result = true;
    parsed.result.push_back(found->second.size);
  }
  parsed.result_rank = parsed.result.rank();
  const Dims strides = contiguous_strides(parsed.result);
  for (std::size_t i = 0; i < result.size(); ++i) {
    EinsumLabel& label = all.labels[result[i]];
    label.result_stride = strides[static_cast<int>(i)];
    parsed.labels.push_back(label);
  }
  for (const int name : all.order) {
    if (!all.labels[name].in_result) parsed.labels.push_back(all.labels[name]);
  }
  return parsed;
}

}  // namespace headway
