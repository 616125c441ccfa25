// Frequencies of the rotation, plain and stretched, and their table. Everything in double: an angle of a hundred
// thousand radians has lost five of f32's seven digits.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "headway/kv_cache.h"
#include "ops/cached_attention/check_tensors.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

void check_positive(const char* field, double value) {
  require(std::isfinite(value) && value > 0, field, " is ", value, ", expected a finite number above 0");
}

void check_scaling(const RotaryScaling& scaling) {
  using Kind = RotaryScaling::Kind;
  if (scaling.kind == Kind::kNone) return;
  check_positive("scaling.factor", scaling.factor);
  if (scaling.kind == Kind::kYarn || scaling.kind == Kind::kLlama3) {
    check_positive("scaling.original_max_position", scaling.original_max_position);
  }
  if (scaling.kind == Kind::kYarn) {
    check_positive("scaling.beta_fast", scaling.beta_fast);
    check_positive("scaling.beta_slow", scaling.beta_slow);
    if (scaling.attention_factor) check_positive("scaling.attention_factor", *scaling.attention_factor);
  }
  if (scaling.kind == Kind::kLlama3) {
    check_positive("scaling.low_freq_factor", scaling.low_freq_factor);
    require(scaling.high_freq_factor > scaling.low_freq_factor, "scaling.high_freq_factor is ",
            scaling.high_freq_factor, ", expected more than low_freq_factor = ", scaling.low_freq_factor);
  }
}

void check_rotary(const RotarySpec& spec) {
  require(spec.rotary_dim >= 2 && spec.rotary_dim % 2 == 0, "rotary_dim is ", spec.rotary_dim,
          ", expected an even number of at least 2");
  require(spec.rotary_dim <= 1 << 16, "rotary_dim is ", spec.rotary_dim, ", expected at most ", 1 << 16);
  require(spec.positions >= 0 && spec.positions <= 1 << 30, "positions is ", spec.positions, ", expected 0 to ",
          1 << 30);
  require(std::isfinite(spec.base) && spec.base > 1, "base is ", spec.base, ", expected a finite number above 1");
  check_scaling(spec.scaling);
}

/// The pair whose wavelength fits `rotations` times into the original length (Peng et al. 2023, YaRN).
double pair_of_rotations(const RotarySpec& spec, double rotations) {
  const double wavelengths = spec.scaling.original_max_position / (rotations * kTwoPi);
  return static_cast<double>(spec.rotary_dim) * std::log(wavelengths) / (2 * std::log(spec.base));
}

/// Share of pair k that is not stretched.
double yarn_share(const RotarySpec& spec, std::int64_t pair) {
  const double low = std::max(std::floor(pair_of_rotations(spec, spec.scaling.beta_fast)), 0.0);
  double high =
      std::min(std::ceil(pair_of_rotations(spec, spec.scaling.beta_slow)), static_cast<double>(spec.rotary_dim - 1));
  if (high == low) high += 0.001;
  return 1 - std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
}

/// Three bands by wavelength: long ones are stretched, short ones are not, those between are blended.
double llama3_frequency(const RotaryScaling& scaling, double frequency) {
  const double turns = scaling.original_max_position * frequency / kTwoPi;  // within the original length
  const double share =
      std::clamp((turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0, 1.0);
  return (1 - share) * frequency / scaling.factor + share * frequency;
}

/// Radians per position of pair k.
double frequency_of(const RotarySpec& spec, std::int64_t pair) {
  const RotaryScaling& scaling = spec.scaling;
  const auto r = static_cast<double>(spec.rotary_dim);
  double base = spec.base;
  // With one pair alone every base gives a frequency of 1.
  if (scaling.kind == RotaryScaling::Kind::kNtk && spec.rotary_dim > 2) base *= std::pow(scaling.factor, r / (r - 2));
  const double frequency = std::pow(base, -2 * static_cast<double>(pair) / r);
  switch (scaling.kind) {
    case RotaryScaling::Kind::kLinear:
      return frequency / scaling.factor;
    case RotaryScaling::Kind::kYarn: {
      const double share = yarn_share(spec, pair);
      return frequency / scaling.factor * (1 - share) + frequency * share;
    }
    case RotaryScaling::Kind::kLlama3:
      return llama3_frequency(scaling, frequency);
    default:
      return frequency;
  }
}

double attention_factor(const RotaryScaling& scaling) {
  if (scaling.kind != RotaryScaling::Kind::kYarn) return 1;
  return scaling.attention_factor.value_or(scaling.factor <= 1 ? 1 : 0.1 * std::log(scaling.factor) + 1);
}

}  // namespace

RotaryTable::RotaryTable(const RotarySpec& spec)
    : pairs_(spec.rotary_dim / 2), positions_(spec.positions), interleaved_(spec.interleaved) {
  check_rotary(spec);
  allocate();
  const double factor = attention_factor(spec.scaling);
  for (std::int64_t k = 0; k < pairs_; ++k) {
    const double frequency = frequency_of(spec, k);
    for (std::int64_t p = 0; p < positions_; ++p) {
      const double angle = frequency * static_cast<double>(p);
      cos_[static_cast<std::size_t>(p * pairs_ + k)] = static_cast<float>(factor * std::cos(angle));
      sin_[static_cast<std::size_t>(p * pairs_ + k)] = static_cast<float>(factor * std::sin(angle));
    }
  }
}

RotaryTable::RotaryTable(const ConstTensorView& cos, const ConstTensorView& sin, bool interleaved)
    : pairs_(0), positions_(0), interleaved_(interleaved) {
  require(cos.present && cos.rank() == 2, "cos has rank ", cos.rank(), ", expected 2");
  check_tensor("cos", cos, DataType::kF32, cos.dims);
  check_tensor("sin", sin, DataType::kF32, cos.dims);
  positions_ = cos.dims[0];
  pairs_ = cos.dims[1];
  allocate();
  for (std::int64_t p = 0; p < positions_; ++p) {
    for (std::int64_t k = 0; k < pairs_; ++k) {
      const auto at = static_cast<std::size_t>(p * pairs_ + k);
      cos_[at] = cos.as<float>()[p * cos.strides[0] + k * cos.strides[1]];
      sin_[at] = sin.as<float>()[p * sin.strides[0] + k * sin.strides[1]];
    }
  }
}

void RotaryTable::allocate() {
  translate_bad_alloc([&] {
    const auto count = static_cast<std::size_t>(pairs_ * positions_);
    cos_.resize(count);
    sin_.resize(count);
  });
}

}  // namespace headway
