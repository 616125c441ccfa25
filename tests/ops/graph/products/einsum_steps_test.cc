// Equations that are no product of two matrices: what each is against plain sums, and how many steps it takes.
#include <map>

#include "ops/graph/products/plain_einsum.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

struct Equation {
  std::vector<std::string> terms;
  std::string result;

  std::string text() const {
    std::string all;
    for (const std::string& term : terms) all += (all.empty() ? "" : ",") + term;
    return all + "->" + result;
  }
};

const std::map<char, std::int64_t> kSizes{{'i', 3}, {'j', 4}, {'k', 2}, {'l', 5}, {'m', 3}};

Dims dims_of(const std::string& term, const std::map<char, std::int64_t>& sizes) {
  Dims dims;
  for (const char label : term) dims.push_back(sizes.at(label));
  return dims;
}

/// Over every assignment of the labels.
std::vector<double> plain_sums(const Equation& e, const std::vector<std::vector<double>>& operands) {
  std::map<char, std::int64_t> at;
  std::int64_t total = 1;
  for (const std::string& term : e.terms) {
    for (const char label : term) {
      if (at.emplace(label, 0).second) total *= kSizes.at(label);
    }
  }
  const auto offset = [&](const std::string& term) {
    std::int64_t place = 0;
    for (const char label : term) place = place * kSizes.at(label) + at.at(label);
    return static_cast<std::size_t>(place);
  };
  std::vector<double> out(static_cast<std::size_t>(element_count(dims_of(e.result, kSizes))));
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i;
    for (auto& [label, index] : at) {
      index = rest % kSizes.at(label);
      rest /= kSizes.at(label);
    }
    double product = 1;
    for (std::size_t o = 0; o < operands.size(); ++o) product *= operands[o][offset(e.terms[o])];
    out[offset(e.result)] += product;
  }
  return out;
}

TEST(EinsumSums, LabelsOfOneOperandAlone) {
  const Equation equations[] = {{{"i", "j"}, ""},
                                {{"ij", "kj"}, "j"},
                                {{"ij", "kj"}, "ij"},
                                {{"ij", "k", "lm"}, "m"},
                                {{"ijk", "lj", "kim"}, "mk"},
                                {{"ii", "jk"}, "k"},
                                {{"iji", "lk"}, "kj"},
                                {{"ij", "jk", "lk"}, "i"},
                                {{"i", "j", "k", "l"}, "lk"},
                                {{"ij", "jk", "ki"}, ""},
                                {{"ijk"}, "j"}};
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kI64, DataType::kI32}) {
    for (const Equation& e : equations) {
      SCOPED_TRACE(e.text() + " " + type_name(type));
      Random random(5);
      std::vector<Tensor> inputs;
      std::vector<std::vector<double>> operands;
      for (const std::string& term : e.terms) {
        const Dims dims = dims_of(term, kSizes);
        std::vector<double> numbers_in;
        for (std::int64_t i = 0; i < element_count(dims); ++i) numbers_in.push_back(std::round(random.normal() * 4));
        operands.push_back(numbers_in);
        inputs.push_back(numbers(type, dims, numbers_in));
      }
      // Small whole numbers: every type that is not rounded to holds all sums.
      const std::vector<double> exact = plain_sums(e, operands);
      const Tensor y = run_on("Einsum", std::move(inputs), {{"equation", e.text()}});
      ASSERT_EQ(y.dims(), dims_of(e.result, kSizes));
      const std::vector<double> got = as_doubles(y);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], exact[i], type == DataType::kF16 ? 1e-3 * std::abs(exact[i]) : 0);
      }
    }
  }
}

TEST(EinsumSums, AnInfinityAndNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto sum = [](const std::vector<double>& a, const std::vector<double>& b) {
    return as_doubles(run_on("Einsum",
                             list(numbers(DataType::kF32, {static_cast<std::int64_t>(a.size())}, a),
                                  numbers(DataType::kF32, {static_cast<std::int64_t>(b.size())}, b)),
                             {{"equation", std::string("i,j->")}}))[0];
  };
  EXPECT_EQ(sum({inf, 1}, {1, 2}), inf);
  EXPECT_TRUE(std::isnan(sum({inf, 1}, {1, -1})));
  EXPECT_EQ(sum({}, {inf}), 0);
}

std::uint64_t steps_of(const Equation& e, const std::map<char, std::int64_t>& sizes) {
  std::vector<Dims> dims;
  std::vector<std::size_t> ranks;
  for (const std::string& term : e.terms) {
    dims.push_back(dims_of(term, sizes));
    ranks.push_back(term.size());
  }
  const EinsumNames names = parse_einsum("Einsum", e.text(), ranks);
  return PlainEinsum("Einsum", einsum_equation(names, dims), ranks.size()).steps();
}

/// n · m products, where n + m additions do.
TEST(EinsumSteps, GrowWithTheOperandsAndNotTheirProduct) {
  constexpr std::int64_t kLong = 1 << 30;
  EXPECT_EQ(steps_of({{"i", "j"}, ""}, {{'i', kLong}, {'j', kLong}}), 2u * kLong + 2);
  EXPECT_EQ(steps_of({{"i", "j", "k", "l"}, ""}, {{'i', kLong}, {'j', kLong}, {'k', kLong}, {'l', kLong}}),
            4u * kLong + 4);
  EXPECT_EQ(steps_of({{"ai", "bj"}, "ab"}, {{'a', 8}, {'b', 4}, {'i', 1000}, {'j', 100}}), 8000u + 400 + 2 * 32);
}

/// What is left of a few thousand elements may take years.
TEST(EinsumSteps, AreRefusedWhereTheyAreTooMany) {
  const char* const equation = "ab,bc,cd,de,ef,fg,gh,ha->";
  const auto matrix = [](std::int64_t n) { return numbers(DataType::kF32, {n, n}, std::vector<double>(n * n, 1)); };
  const auto ring = [&](std::int64_t n) {
    return list(matrix(n), matrix(n), matrix(n), matrix(n), matrix(n), matrix(n), matrix(n), matrix(n));
  };
  const Attributes attributes{{"equation", std::string(equation)}};
  EXPECT_EQ(as_doubles(run_on("Einsum", ring(4), attributes))[0], 65536);
  const std::string text = error_of([&] { run_on("Einsum", ring(100), attributes); }, ErrorCode::kUnsupported);
  expect_contains(text, "(Einsum): Einsum has 80000000000000000 products to add one by one, at most 68719476736");
  expect_contains(error_of([&] { run_on("Einsum", ring(300), attributes); }, ErrorCode::kUnsupported),
                  "over 18446744073709551615 products");
}

}  // namespace
}  // namespace headway::testing
