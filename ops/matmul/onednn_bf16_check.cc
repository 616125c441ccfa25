// The shapes, the scalar loop, and the two paths as the library runs them.
#include "ops/matmul/onednn_bf16_check.h"

#include <cmath>
#include <iostream>
#include <limits>

#include "ops/base/layout.h"
#include "ops/base/numeric.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/onednn_adapter.h"
#include "ops/matmul/onednn_version.h"
#include "runtime/base/text_stream.h"

namespace headway::onednn {
namespace {

struct Shape {
  std::int64_t rows, columns, depth;
};
/// Below, at and beyond the blocks of 16 rows, 16 columns and 32 steps of depth that vectors and tiles have. Neither a
/// depth nor a half of one is 63.
constexpr Shape kShapes[] = {{1, 17, 33}, {7, 33, 65}, {16, 16, 32}, {33, 65, 129}, {96, 128, 256}};

/// Distinct numbers in (−1, 1), the same in every process.
float value_of(std::uint64_t seed) {
  seed = (seed + 1) * 0x9E3779B97F4A7C15u;
  seed = (seed ^ (seed >> 29)) * 0xBF58476D1CE4E5B9u;
  return static_cast<float>(static_cast<double>(seed >> 11) / 4503599627370496.0 - 1.0);
}

Bf16Problem make_problem(const Shape& s) {
  Bf16Problem p{s.rows, s.columns, s.depth, {}, {}, {}};
  std::uint64_t seed = static_cast<std::uint64_t>(s.rows * 1000003 + s.depth);
  for (std::int64_t i = 0; i < s.rows * s.depth; ++i) p.a.push_back(to_bfloat16(value_of(seed++)));
  for (std::int64_t i = 0; i < s.columns * s.depth; ++i) p.b.push_back(to_bfloat16(value_of(seed++)));
  for (std::int64_t i = 0; i < s.columns; ++i) p.bias.push_back(value_of(seed++));
  return p;
}

/// Allows for one rounding to bf16 and for f32 sums in any order: far less than any corruption.
std::string fault_of(const Bf16Problem& p, const std::vector<float>& c) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    for (std::int64_t n = 0; n < p.columns; ++n) {
      double exact = p.bias[static_cast<std::size_t>(n)];
      double magnitude = std::abs(exact);
      for (std::int64_t k = 0; k < p.depth; ++k) {
        const double term = static_cast<double>(widen(p.a[static_cast<std::size_t>(i * p.depth + k)])) *
                            static_cast<double>(widen(p.b[static_cast<std::size_t>(n * p.depth + k)]));
        exact += term;
        magnitude += std::abs(term);
      }
      const double got = static_cast<double>(c[static_cast<std::size_t>(i * p.columns + n)]);
      if (std::abs(got - exact) <= std::abs(exact) / 256 + 1e-5 * magnitude) continue;
      TextStream text;
      text << "of a product of " << p.rows << " x " << p.columns << " x " << p.depth << ", element (" << i << ", " << n
           << ") is " << got << ", expected " << exact;
      return text.str();
    }
  }
  return {};
}

/// Runs a matmul with scratch of its own. Not for hot paths.
void execute(const Matmul& matmul, const MatmulOperands& operands) {
  const AlignedBuffer scratch(matmul.scratch_bytes() + 64);
  MatmulOperands with_scratch = operands;
  with_scratch.scratch = scratch.data();
  matmul.execute(with_scratch);
}

void multiply_packed(const Bf16Problem& p, float* c) {
  MatmulDescs d;
  d.a = matrix_desc(p.rows, p.depth, p.depth, DataType::kBF16);
  d.b = any_desc(p.depth, p.columns, DataType::kBF16);
  d.c = matrix_desc(p.rows, p.columns, p.columns, DataType::kBF16);
  d.bias = matrix_desc(1, p.columns, p.columns);
  d.with_bias = true;
  const Matmul matmul(d);
  const AlignedBuffer packed(matmul.b_desc().get_size());
  const dnnl::memory weights(matmul.b_desc(), engine(), packed.data());
  const dnnl::memory::desc plain = transposed_desc(p.columns, p.depth, p.depth, DataType::kBF16);
  reorder(dnnl::memory(plain, engine(), const_cast<BFloat16*>(p.b.data())), weights);
  const dnnl::memory bias(d.bias, engine(), const_cast<float*>(p.bias.data()));
  std::vector<BFloat16> rounded(static_cast<std::size_t>(p.rows * p.columns), {0x7FC0});
  execute(matmul, {.a = p.a.data(),
                   .b = nullptr,
                   .b_memory = weights.get(),
                   .bias_memory = bias.get(),
                   .c = rounded.data(),
                   .scratch = nullptr});
  for (const BFloat16 value : rounded) *c++ = widen(value);
}

/// a·bᵀ once with b as given and once with b transposed, half of the depth each, so that the second adds.
void multiply_plain(const Bf16Problem& p, float* c) {
  const std::int64_t half = p.depth / 2;
  const std::int64_t rest = p.depth - half;
  std::vector<BFloat16> transposed(static_cast<std::size_t>(rest * p.columns));
  for (std::int64_t n = 0; n < p.columns; ++n) {
    for (std::int64_t k = 0; k < rest; ++k) {
      transposed[static_cast<std::size_t>(k * p.columns + n)] = p.b[static_cast<std::size_t>(n * p.depth + half + k)];
    }
  }
  MatmulDescs first;
  first.a = matrix_desc(p.rows, half, p.depth, DataType::kBF16);
  first.b = transposed_desc(p.columns, half, p.depth, DataType::kBF16);
  first.c = matrix_desc(p.rows, p.columns, p.columns);
  MatmulDescs second = first;
  second.a = matrix_desc(p.rows, rest, p.depth, DataType::kBF16);
  second.b = matrix_desc(rest, p.columns, p.columns, DataType::kBF16);
  second.accumulate = true;
  const auto run = [&](const MatmulDescs& descs, const BFloat16* a, const BFloat16* b) {
    execute(Matmul(descs), {.a = a, .b = b, .b_memory = nullptr, .bias_memory = nullptr, .c = c, .scratch = nullptr});
  };
  run(first, p.a.data(), p.b.data());
  run(second, p.a.data() + half, transposed.data());
  for (std::int64_t i = 0; i < p.rows * p.columns; ++i) c[i] += p.bias[static_cast<std::size_t>(i % p.columns)];
}

const std::string& refusal_of(Bf16SelfCheck& check) {
  static const std::string no_instructions = "this CPU has no bf16 products that oneDNN uses";
  return cpu_multiplies_bf16() ? check.refusal() : no_instructions;
}

}  // namespace

std::string bf16_product_fault(const Bf16Product& product, std::int64_t depth_multiple) {
  for (Shape shape : kShapes) {
    shape.depth = round_up(shape.depth, depth_multiple);
    const Bf16Problem problem = make_problem(shape);
    std::vector<float> c(static_cast<std::size_t>(shape.rows * shape.columns), std::numeric_limits<float>::quiet_NaN());
    try {
      translate_errors("run the products of the self-check", [&] { product(problem, c.data()); });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;  // says nothing about the products
      return error.what();
    }
    if (std::string fault = fault_of(problem, c); !fault.empty()) return fault;
  }
  return {};
}

const std::string& Bf16SelfCheck::refusal() {
  std::call_once(once_, [this] {
    const std::string fault = bf16_product_fault(product_, depth_multiple_);
    if (fault.empty()) return;
    refusal_ = "oneDNN " + onednn_version() + " failed its self-check: " + fault;
    std::cerr << "headway: " << path_ << " will not be used: " + refusal_ + "\n";
  });
  return refusal_;
}

bool bf16_has_tiles() {
  constexpr unsigned kRequired = dnnl_cpu_isa_avx512_core_amx;
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kRequired) == kRequired;
}

const std::string& packed_bf16_refusal() {
  static Bf16SelfCheck check("oneDNN's bf16 product of packed weights", multiply_packed, kBf16DepthMultiple);
  return refusal_of(check);
}

const std::string& plain_bf16_refusal() {
  static Bf16SelfCheck check("oneDNN's bf16 product of tiles", multiply_plain);
  return refusal_of(check);
}

}  // namespace headway::onednn
