// Gemm, Einsum, Conv and MatMul of other types against plain sums in double.
#include <map>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor copy_of(const Tensor& from) {
  Tensor to(from.type(), from.dims());
  copy_elements(from.view(), to.view());
  return to;
}

double epsilon_of(DataType type) {
  return type == DataType::kF64 ? 1e-13 : type == DataType::kF32 ? 2e-6 : type == DataType::kF16 ? 2e-3 : 1.6e-2;
}

std::vector<double> random_values(const Dims& dims, Random* random) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(dims); ++i) values.push_back(random->normal());
  return values;
}

TEST(MatMulTypes, AgreeWithDouble) {
  // The second size is beyond what halves do in plain loops.
  for (const std::int64_t n : {9, 140}) {
    for (const DataType type : {DataType::kF64, DataType::kF16, DataType::kBF16}) {
      Random random(1);
      const Dims da{2, 30, n}, db{n, 140};
      const auto a = as_doubles(numbers(type, da, random_values(da, &random)));
      const auto b = as_doubles(numbers(type, db, random_values(db, &random)));
      const auto got = as_doubles(run_on("MatMul", list(numbers(type, da, a), numbers(type, db, b))));
      for (std::size_t i = 0; i < got.size(); ++i) {
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
          const double term = a[i / 140 * static_cast<std::size_t>(n) + k] * b[k * 140 + i % 140];
          sum += term;
          magnitude += std::abs(term);
        }
        EXPECT_NEAR(got[i], sum, 1e-6 * magnitude + epsilon_of(type) * std::abs(sum)) << type_name(type);
      }
    }
  }
  expect_tensor(run_on("MatMul", list(integers({1, 2}, {3, INT64_MAX}), integers({2, 1}, {5, 2}))), DataType::kI64,
                {1, 1}, {13});
  expect_tensor(run_on("MatMul", list(counted({2, 0}, DataType::kF64), counted({0, 2}, DataType::kF64))),
                DataType::kF64, {2, 2}, {0, 0, 0, 0});
  expect_contains(refusal("MatMul", list(numbers(DataType::kBool, {1}, {1}), numbers(DataType::kBool, {1}, {1}))),
                  "bool");
  expect_contains(refusal("MatMul", list(floats({1}, {1}), axis_list({1}))), "expected equal types");
}

TEST(Gemm, TransposedScaledAndBiased) {
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kI64}) {
    for (const std::int64_t transpose_a : {0, 1}) {
      for (const std::int64_t transpose_b : {0, 1}) {
        for (const Dims& c_dims : {Dims{5}, Dims{1, 5}, Dims{3, 1}, Dims{3, 5}, Dims{}, Dims{1}}) {
          for (const bool constant : {true, false}) {
            for (const float factor : {1.0f, 2.0f}) {
              const Dims da = transpose_a != 0 ? Dims{4, 3} : Dims{3, 4},
                         db = transpose_b != 0 ? Dims{5, 4} : Dims{4, 5};
              const Tensor a = counted(da, type), b = counted(db, type), c = counted(c_dims, type);
              std::vector<double> expected;
              for (std::int64_t i = 0; i < 3; ++i) {
                for (std::int64_t j = 0; j < 5; ++j) {
                  double sum = 0;
                  for (std::int64_t k = 0; k < 4; ++k) {
                    sum += static_cast<double>((transpose_a != 0 ? k * 3 + i : i * 4 + k) *
                                               (transpose_b != 0 ? j * 4 + k : k * 5 + j));
                  }
                  const std::int64_t columns = c_dims.rank() == 0 ? 1 : c_dims.back(),
                                     rows = element_count(c_dims) / columns;
                  const std::int64_t at = (rows == 1 ? 0 : i * columns) + (columns == 1 ? 0 : j);
                  expected.push_back(double{factor} * sum + 3.0 * double{factor} * static_cast<double>(at));
                }
              }
              const auto got =
                  run_node("Gemm", list(copy_of(a), copy_of(b), copy_of(c)),
                           {{"transA", transpose_a}, {"transB", transpose_b}, {"alpha", factor}, {"beta", 3 * factor}},
                           {.first_constant = constant ? 1u : 3u});
              expect_tensor(got[0], type, {3, 5}, expected);
            }
          }
        }
      }
    }
  }
  expect_tensor(run_on("Gemm", list(counted({1, 2}), counted({2, 1}))), DataType::kF32, {1, 1}, {1});
  expect_contains(refusal("Gemm", list(counted({2, 3}), counted({2, 3}))), "depths 3 and 2");
  expect_contains(refusal("Gemm", list(counted({2}), counted({2, 3}))), "ranks 1 and 2");
  expect_contains(refusal("Gemm", list(counted({2, 3}), counted({3, 4}), counted({5}))), "4 and 5");
  expect_contains(refusal("Gemm", list(counted({1, 1}), counted({1, 4}), counted({2, 4}))),
                  "expected to broadcast to [1, 4]");
}

/// Sums over every assignment of the letters, which the caller gives sizes.
std::vector<double> brute_einsum(const std::string& a_term, const std::string& b_term, const std::string& out_term,
                                 std::map<char, std::int64_t> sizes, const std::vector<double>& a,
                                 const std::vector<double>& b) {
  std::int64_t total = 1, out_count = 1;
  for (const auto& [letter, size] : sizes) total *= size;
  for (const char letter : out_term) out_count *= sizes[letter];
  std::vector<double> out(static_cast<std::size_t>(out_count));
  for (std::int64_t i = 0; i < total; ++i) {
    std::map<char, std::int64_t> at;
    std::int64_t rest = i;
    for (const auto& [letter, size] : sizes) {
      at[letter] = rest % size;
      rest /= size;
    }
    const auto offset = [&](const std::string& term) {
      std::int64_t o = 0;
      for (const char letter : term) o = o * sizes[letter] + at[letter];
      return static_cast<std::size_t>(o);
    };
    out[offset(out_term)] += a[offset(a_term)] * (b_term.empty() ? 1 : b[offset(b_term)]);
  }
  return out;
}

TEST(Einsum, TwoOperands) {
  const std::map<char, std::int64_t> sizes{{'b', 2}, {'q', 3}, {'k', 4}, {'h', 2}, {'d', 5}, {'e', 3}};
  const char* cases[][3] = {{"bqhd", "bkhd", "bhqk"}, {"bhqk", "bkhd", "bqhd"}, {"bqd", "dhe", "bhqe"},
                            {"bhqd", "bhkd", "bhqk"}, {"qd", "dk", "qk"},       {"qd", "kd", "kq"},
                            {"d", "d", ""},           {"q", "k", "qk"},         {"bqd", "bqd", "bqd"},
                            {"bqd", "hk", "hk"},      {"qhd", "h", "qd"},       {"bqhd", "hde", "bqe"}};
  for (const auto& c : cases) {
    for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16}) {
      for (const bool constant : {true, false}) {
        SCOPED_TRACE(std::string(c[0]) + "," + c[1] + "->" + c[2] + " " + type_name(type));
        std::map<char, std::int64_t> used;
        const auto dims_of = [&](const std::string& term) {
          Dims dims;
          for (const char letter : term) dims.push_back(used[letter] = sizes.at(letter));
          return dims;
        };
        const Dims da = dims_of(c[0]), db = dims_of(c[1]), out = dims_of(c[2]);
        Random random(3);
        const auto a = as_doubles(numbers(type, da, random_values(da, &random)));
        const auto b = as_doubles(numbers(type, db, random_values(db, &random)));
        const auto exact = brute_einsum(c[0], c[1], c[2], used, a, b);
        const Tensor y = std::move(run_node("Einsum", list(numbers(type, da, a), numbers(type, db, b)),
                                            {{"equation", std::string(c[0]) + "," + c[1] + "->" + c[2]}},
                                            {.first_constant = constant ? 1u : 2u})[0]);
        ASSERT_EQ(y.dims(), out);
        const auto got = as_doubles(y);
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], exact[i], epsilon_of(type) * (1 + std::abs(exact[i])) * 4);
      }
    }
  }
}

TEST(Einsum, OtherFormsAndRefusals) {
  const auto einsum = [](const char* equation, std::vector<Tensor> inputs) {
    return run_on("Einsum", std::move(inputs), {{"equation", std::string(equation)}});
  };
  expect_tensor(einsum("ij -> ji", list(counted({2, 3}))), DataType::kF32, {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_tensor(einsum("ij->", list(counted({2, 3}))), DataType::kF32, {}, {15});
  expect_tensor(einsum("ii->i", list(counted({3, 3}))), DataType::kF32, {3}, {0, 4, 8});
  expect_tensor(einsum("ii", list(counted({3, 3}, DataType::kI64))), DataType::kI64, {}, {12});
  expect_tensor(einsum("ba", list(counted({2, 3}))), DataType::kF32, {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_tensor(einsum("...ij,...jk->...ik", list(counted({2, 1, 1, 2}), counted({3, 2, 1}))), DataType::kF32,
                {2, 3, 1, 1}, {1, 3, 5, 3, 13, 23});
  expect_tensor(einsum("...i,i", list(counted({2, 2}), counted({2}))), DataType::kF32, {2}, {1, 3});
  expect_tensor(einsum("i,i,i->", list(counted({3}), counted({3}), counted({3}))), DataType::kF32, {}, {9});
  expect_tensor(einsum("ij,jk->ik", list(counted({2, 0}), counted({0, 2}))), DataType::kF32, {2, 2}, {0, 0, 0, 0});
  const auto refused = [](const char* equation, std::vector<Tensor> inputs) {
    return refusal("Einsum", std::move(inputs), {{"equation", std::string(equation)}});
  };
  expect_contains(refused("ij,jk->ik", list(counted({2, 3}))), "2 terms, expected 1");
  expect_contains(refused("ij->i", list(counted({3}))), "rank 1, expected 2");
  expect_contains(refused("i,i->i", list(counted({2}), counted({3}))), "axis 0 is 3, expected 2");
  expect_contains(refused("i->j", list(counted({2}))), "label 'j'");
  expect_contains(refused("i->ii", list(counted({2}))), "has it twice");
  expect_contains(refused("i1->i", list(counted({2}))), "'1'");
}

struct ConvCase {
  Dims x, w;
  Ints strides, pads, dilations;
  std::int64_t group;
};

/// Two spatial axes; one is given as an axis of size 1 in front.
struct Sums {
  std::vector<double> value, magnitude;  // magnitude: of the terms, which bounds what rounding can do
};
Sums brute_conv(const ConvCase& c, const std::vector<double>& x, const std::vector<double>& w,
                const std::vector<double>& bias, const Dims& out) {
  const Dims& dx = c.x;
  const Dims& dw = c.w;
  Sums y;
  const std::int64_t per_group = dw[0] / c.group;
  for (std::int64_t i = 0; i < element_count(out); ++i) {
    const std::int64_t ox = i % out[3], oy = i / out[3] % out[2], m = i / (out[2] * out[3]) % out[1],
                       n = i / (out[1] * out[2] * out[3]);
    double sum = bias[static_cast<std::size_t>(m)], magnitude = std::abs(sum);
    for (std::int64_t k = 0; k < dw[1] * dw[2] * dw[3]; ++k) {
      const std::int64_t kx = k % dw[3], ky = k / dw[3] % dw[2], channel = k / (dw[2] * dw[3]);
      const std::int64_t iy = oy * c.strides[0] - c.pads[0] + ky * c.dilations[0],
                         ix = ox * c.strides[1] - c.pads[1] + kx * c.dilations[1];
      if (iy < 0 || iy >= dx[2] || ix < 0 || ix >= dx[3]) continue;
      const std::int64_t source = ((n * dx[1] + m / per_group * dw[1] + channel) * dx[2] + iy) * dx[3] + ix;
      const double term =
          x[static_cast<std::size_t>(source)] * w[static_cast<std::size_t>(m * dw[1] * dw[2] * dw[3] + k)];
      sum += term;
      magnitude += std::abs(term);
    }
    y.value.push_back(sum);
    y.magnitude.push_back(magnitude);
  }
  return y;
}

TEST(Conv, AgainstPlainSums) {
  const ConvCase cases[] = {{{1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                            {{2, 3, 32, 32}, {20, 3, 16, 16}, {16, 16}, {0, 0, 0, 0}, {1, 1}, 1},
                            {{2, 4, 1, 11}, {6, 2, 1, 3}, {1, 2}, {0, 1, 0, 2}, {1, 1}, 2},
                            {{1, 4, 7, 9}, {4, 1, 3, 2}, {2, 1}, {0, 2, 1, 0}, {2, 3}, 4},
                            {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1}};
  for (const ConvCase& c : cases) {
    for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16}) {
      for (const bool constant : {true, false}) {
        Random random(7);
        const auto x = as_doubles(numbers(type, c.x, random_values(c.x, &random)));
        const auto w = as_doubles(numbers(type, c.w, random_values(c.w, &random)));
        const auto bias = as_doubles(numbers(type, {c.w[0]}, random_values({c.w[0]}, &random)));
        Dims out{c.x[0], c.w[0]};
        for (int a = 0; a < 2; ++a) {
          const auto i = static_cast<std::size_t>(a);
          out.push_back(
              (c.x[2 + a] + c.pads[i] + c.pads[i + 2] - (c.w[2 + a] - 1) * c.dilations[i] - 1) / c.strides[i] + 1);
        }
        const Tensor y = std::move(
            run_node("Conv", list(numbers(type, c.x, x), numbers(type, c.w, w), numbers(type, {c.w[0]}, bias)),
                     {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}},
                     {.first_constant = constant ? 1u : 3u})[0]);
        ASSERT_EQ(y.dims(), out);
        const auto exact = brute_conv(c, x, w, bias, out);
        const auto got = as_doubles(y);
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_NEAR(got[i], exact.value[i], epsilon_of(type) * std::abs(exact.value[i]) + 1e-6 * exact.magnitude[i])
              << c.x << " * " << c.w << ' ' << type_name(type);
        }
      }
    }
  }
}

TEST(Conv, OneAndThreeAxesAndAutoPad) {
  const auto ones = [](const Dims& dims) {
    return floats(dims, std::vector<double>(static_cast<std::size_t>(element_count(dims)), 1));
  };
  expect_tensor(run_on("Conv", list(counted({1, 1, 5}), ones({1, 1, 3}))), DataType::kF32, {1, 1, 3}, {3, 6, 9});
  expect_tensor(run_on("Conv", list(counted({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2}), floats({1}, {100}))),
                DataType::kF32, {1, 1, 1, 1, 1}, {128});
  const auto padded = [&](const char* mode) {
    return run_on("Conv", list(counted({1, 1, 4}), ones({1, 1, 2})), {{"auto_pad", std::string(mode)}});
  };
  expect_tensor(padded("SAME_UPPER"), DataType::kF32, {1, 1, 4}, {1, 3, 5, 3});
  expect_tensor(padded("SAME_LOWER"), DataType::kF32, {1, 1, 4}, {0, 1, 3, 5});
  expect_tensor(padded("VALID"), DataType::kF32, {1, 1, 3}, {1, 3, 5});
  expect_tensor(run_on("Conv", list(counted({0, 1, 4}), ones({2, 1, 2}))), DataType::kF32, {0, 2, 3}, {});
  expect_contains(refusal("Conv", list(counted({1, 1, 2}), ones({1, 1, 3}))),
                  "2 elements with its padding, expected at least 3");
  expect_contains(refusal("Conv", list(counted({1, 3, 4}), ones({1, 1, 3}))), "3 channels, expected 1");
  expect_contains(refusal("Conv", list(counted({1, 2, 4}), ones({3, 1, 3})), {{"group", std::int64_t{2}}}),
                  "group is 2");
  expect_contains(refusal("Conv", list(counted({1, 2}), ones({1, 2}))), "rank 2, expected 3 to 5");
  expect_contains(refusal("Conv", list(counted({1, 1, 4}), ones({1, 1, 3})), {{"strides", Ints{0}}}),
                  "strides holds 0");
  expect_contains(refusal("Conv", list(counted({1, 1, 4}), ones({1, 1, 3})), {{"pads", Ints{1}}}),
                  "1 numbers, expected 2");
  expect_contains(refusal("Conv", list(counted({1, 1, 4}), ones({1, 1, 3}), ones({2}))),
                  "bias has dims [2], expected [1]");
  expect_contains(refusal("Conv", list(counted({1, 1, 4}), ones({1, 1, 3})), {{"auto_pad", std::string("SAME")}}),
                  "'SAME'");
  expect_contains(refusal("Conv", list(counted({1, 1, 4}), ones({1, 1, 3})), {{"kernel_shape", Ints{2}}}),
                  "kernel_shape");
}

}  // namespace
}  // namespace headway::testing
