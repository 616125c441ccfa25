// The rotation's table against values of transformers and against the formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "headway/error.h"
#include "headway/kv_cache.h"

namespace headway::testing {
namespace {

/// Radians per position of pair k, as the table has it.
double frequency(const RotaryTable& table, std::int64_t pair) {
  return std::atan2(table.sin(1)[pair], table.cos(1)[pair]);
}

RotarySpec spec_of(RotaryScaling::Kind kind, double factor) {
  RotarySpec spec;
  spec.rotary_dim = 16;
  spec.positions = 2100;
  spec.scaling.kind = kind;
  spec.scaling.factor = factor;
  spec.scaling.original_max_position = 2048;
  return spec;
}

TEST(Rotary, PlainFrequenciesArePowersOfTheBase) {
  const RotaryTable table(spec_of(RotaryScaling::Kind::kNone, 1));
  for (std::int64_t k = 0; k < 8; ++k) {
    const double f = std::pow(10000.0, -2.0 * static_cast<double>(k) / 16);
    for (const std::int64_t p : {0, 1, 17, 2099}) {
      EXPECT_FLOAT_EQ(table.cos(p)[k], static_cast<float>(std::cos(f * static_cast<double>(p))));
      EXPECT_FLOAT_EQ(table.sin(p)[k], static_cast<float>(std::sin(f * static_cast<double>(p))));
    }
  }
}

TEST(Rotary, LinearAndNtkScaling) {
  const RotaryTable linear(spec_of(RotaryScaling::Kind::kLinear, 4));
  const RotaryTable ntk(spec_of(RotaryScaling::Kind::kNtk, 4));
  for (std::int64_t k = 0; k < 8; ++k) {
    const double exponent = -2.0 * static_cast<double>(k) / 16;
    EXPECT_NEAR(frequency(linear, k), std::pow(10000.0, exponent) / 4, 1e-7);
    EXPECT_NEAR(frequency(ntk, k), std::pow(10000.0 * std::pow(4.0, 16.0 / 14), exponent), 1e-7);
  }
  // The slowest pair is stretched by the whole factor, the fastest by none.
  EXPECT_NEAR(frequency(ntk, 7) * 4, std::pow(10000.0, -14.0 / 16), 1e-7);
  EXPECT_NEAR(frequency(ntk, 0), 1, 1e-7);
}

TEST(Rotary, Llama3ScalingHasThreeBands) {
  RotarySpec spec = spec_of(RotaryScaling::Kind::kLlama3, 8);
  spec.rotary_dim = 128;
  spec.base = 500000;
  spec.scaling.original_max_position = 8192;
  const RotaryTable table(spec);
  for (std::int64_t k = 0; k < 64; ++k) {
    const double plain = std::pow(500000.0, -2.0 * static_cast<double>(k) / 128);
    const double wavelength = 2 * std::numbers::pi / plain;
    double expected = plain;
    if (wavelength > 8192.0) {
      expected = plain / 8;
    } else if (wavelength > 8192.0 / 4) {
      const double smooth = (8192.0 / wavelength - 1) / 3;
      expected = (1 - smooth) * plain / 8 + smooth * plain;
    }
    EXPECT_NEAR(frequency(table, k), expected, 1e-7 * (1 + expected)) << "pair " << k;
  }
}

TEST(Rotary, YarnBlendsBetweenItsCorrectionPairs) {
  RotarySpec spec = spec_of(RotaryScaling::Kind::kYarn, 4);
  spec.rotary_dim = 64;
  const RotaryTable table(spec);
  // Pairs where 32 rotations and 1 fit into 2048 positions: 8.06 and 20.1, so low = 8 and high = 21.
  const double attention = 0.1 * std::log(4.0) + 1;
  for (std::int64_t k = 0; k < 32; ++k) {
    const double plain = std::pow(10000.0, -2.0 * static_cast<double>(k) / 64);
    const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(k) - 8) / (21 - 8)));
    EXPECT_NEAR(frequency(table, k), plain / 4 * ramp + plain * (1 - ramp), 2e-7) << "pair " << k;
    EXPECT_NEAR(std::hypot(table.cos(9)[k], table.sin(9)[k]), attention, 1e-6);
  }
  spec.scaling.attention_factor = 1.5;
  EXPECT_NEAR(RotaryTable(spec).cos(0)[3], 1.5, 1e-6);
}

TEST(Rotary, ATableOfTheEnginesOwnIsCopied) {
  std::vector<float> cos = {1, 2, 3, 4, 5, 6}, sin = {7, 8, 9, 10, 11, 12};
  const RotaryTable table(view_of(cos.data(), {2, 2}, {3, 1}), view_of(sin.data(), {2, 2}, {3, 1}), true);
  cos.assign(6, 0);
  EXPECT_EQ(table.rotary_dim(), 4);
  EXPECT_EQ(table.positions(), 2);
  EXPECT_TRUE(table.interleaved());
  EXPECT_EQ(table.cos(1)[0], 4);
  EXPECT_EQ(table.sin(1)[1], 11);
}

TEST(Rotary, RefusesWhatCannotBe) {
  const auto message = [](auto spoil) -> std::string {
    RotarySpec spec = spec_of(RotaryScaling::Kind::kYarn, 4);
    spoil(spec);
    try {
      RotaryTable table(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_EQ(message([](RotarySpec& s) { s.rotary_dim = 7; }), "rotary_dim is 7, expected an even number of at least 2");
  EXPECT_EQ(message([](RotarySpec& s) { s.positions = -1; }), "positions is -1, expected 0 to 1073741824");
  EXPECT_EQ(message([](RotarySpec& s) { s.base = 1; }), "base is 1, expected a finite number above 1");
  EXPECT_EQ(message([](RotarySpec& s) { s.scaling.factor = 0; }),
            "scaling.factor is 0, expected a finite number above 0");
  EXPECT_EQ(message([](RotarySpec& s) { s.scaling.original_max_position = 0; }),
            "scaling.original_max_position is 0, expected a finite number above 0");
  EXPECT_EQ(message([](RotarySpec& s) {
              s.scaling.kind = RotaryScaling::Kind::kLlama3;
              s.scaling.high_freq_factor = 1;
            }),
            "scaling.high_freq_factor is 1, expected more than low_freq_factor = 1");
  EXPECT_EQ(message([](RotarySpec&) {}), "nothing was refused");
}

}  // namespace
}  // namespace headway::testing
