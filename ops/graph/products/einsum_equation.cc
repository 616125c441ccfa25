// Parsing: letters are labels, "..." stands for the axes left over, right-aligned; without "->" the result has the
// ellipsis and then the labels that appear once, in alphabetical order.
#include "ops/graph/products/einsum_equation.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/check.h"

namespace headway {
namespace {

// An axis' name: a letter, or for the axis i of an ellipsis, counted from its right end, kEllipsis + i.
constexpr int kEllipsis = 256;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The names of one term whose ellipsis stands for `ellipsis_rank` axes.
std::vector<int> names_of(const char* op, const std::string& term, std::size_t ellipsis_rank) {
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
    for (std::size_t a = ellipsis_rank; a-- > 0;) names.push_back(kEllipsis + static_cast<int>(a));
  }
  return names;
}

std::size_t letters_in(const std::string& term) {
  return static_cast<std::size_t>(std::count_if(term.begin(), term.end(), is_letter));
}

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

void add_operand(const std::vector<int>& names, const Dims& dims, std::size_t operand, std::size_t operands,
                 Names* all) {
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
    if (label.size == 1) label.size = dims[axis];
    label.present[operand] = true;
    // A label that is there twice walks the diagonal; one of size 1 does not move.
    if (dims[axis] != 1) label.strides[operand] += strides[axis];
  }
}

std::vector<int> implicit_result(const std::vector<std::vector<int>>& terms, std::size_t ellipsis_rank) {
  std::map<int, int> uses;
  for (const auto& term : terms) {
    for (const int name : term) ++uses[name];
  }
  std::vector<int> names;
  for (std::size_t a = ellipsis_rank; a-- > 0;) names.push_back(kEllipsis + static_cast<int>(a));
  for (const auto& [name, count] : uses) {
    if (name < kEllipsis && count == 1) names.push_back(name);
  }
  return names;
}

}  // namespace

bool EinsumNames::broadcasts(int name) { return name >= kEllipsis; }

EinsumNames parse_einsum(const char* op, const std::string& equation, std::span<const std::size_t> ranks) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  require(terms.size() == ranks.size(), op, " equation '", equation, "' has ", terms.size(), " terms, expected ",
          ranks.size(), " as inputs");
  EinsumNames names;
  std::size_t ellipsis_rank = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t letters = letters_in(terms[i]);
    const std::size_t own = ranks[i] > letters ? ranks[i] - letters : 0;
    if (terms[i].find("...") != std::string::npos) ellipsis_rank = std::max(ellipsis_rank, own);
    names.operands.push_back(names_of(op, terms[i], own));
    require(names.operands[i].size() == ranks[i], op, " input ", i, " has rank ", ranks[i], ", expected ",
            names.operands[i].size(), " as its term of the equation");
  }
  names.result = arrow == std::string::npos ? implicit_result(names.operands, ellipsis_rank)
                                            : names_of(op, text.substr(arrow + 2), ellipsis_rank);
  std::set<int> taken;
  for (const int name : names.result) {
    const bool known = std::any_of(names.operands.begin(), names.operands.end(), [&](const std::vector<int>& operand) {
      return std::find(operand.begin(), operand.end(), name) != operand.end();
    });
    require(known && taken.insert(name).second, op, " result of '", equation, "' has label '",
            static_cast<char>(name < kEllipsis ? name : '.'), "' that no input has, or has it twice");
  }
  return names;
}

EinsumEquation einsum_equation(const EinsumNames& names, std::span<const Dims> operands) {
  Names all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    add_operand(names.operands[i], operands[i], i, operands.size(), &all);
  }
  EinsumEquation parsed;
  for (const int name : names.result) {
    EinsumLabel& label = all.labels[name];
    label.in_result = true;
    parsed.result.push_back(label.size);
  }
  parsed.result_rank = parsed.result.rank();
  const Dims strides = contiguous_strides(parsed.result);
  for (std::size_t i = 0; i < names.result.size(); ++i) {
    EinsumLabel& label = all.labels[names.result[i]];
    label.result_stride = strides[static_cast<int>(i)];
    parsed.labels.push_back(label);
  }
  for (const int name : all.order) {
    if (!all.labels[name].in_result) parsed.labels.push_back(all.labels[name]);
  }
  return parsed;
}

}  // namespace headway
