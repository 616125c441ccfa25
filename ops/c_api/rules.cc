// Enums as the numbers that C has for them. See rules.h.
#include "ops/c_api/rules.h"

#include <cmath>
#include <limits>

#include "runtime/base/check.h"

namespace headway::c_api {
namespace {

/// The numbers of the header are those of the enum, from 0 to `last`.
template <class Enum>
Enum enum_of(std::int32_t number, Enum last, const char* field) {
  require(number >= 0 && number <= static_cast<std::int32_t>(last), field, " is ", number, ", expected 0 to ",
          static_cast<std::int32_t>(last));
  return static_cast<Enum>(number);
}

static_assert(static_cast<int>(Causal::kTopLeft) == HEADWAY_CAUSAL_TOP_LEFT);
static_assert(static_cast<int>(Causal::kBottomRight) == HEADWAY_CAUSAL_BOTTOM_RIGHT);
static_assert(static_cast<int>(Causal::kOffset) == HEADWAY_CAUSAL_OFFSET);
static_assert(static_cast<int>(Causal::kLastKey) == HEADWAY_CAUSAL_LAST_KEY);
static_assert(static_cast<int>(MaskKind::kBool) == HEADWAY_MASK_BOOL);
static_assert(static_cast<int>(MaskKind::kAdditive) == HEADWAY_MASK_ADDITIVE);
static_assert(static_cast<int>(MaskPolarity::kTrueHides) == HEADWAY_TRUE_HIDES);
static_assert(static_cast<int>(EmptyRow::kNan) == HEADWAY_EMPTY_ROW_NAN);
static_assert(static_cast<int>(ScoresOutput::kScaled) == HEADWAY_SCORES_SCALED);
static_assert(static_cast<int>(ScoresOutput::kSoftcapped) == HEADWAY_SCORES_SOFTCAPPED);
static_assert(static_cast<int>(ScoresOutput::kBiased) == HEADWAY_SCORES_BIASED);
static_assert(static_cast<int>(ScoresOutput::kProbabilities) == HEADWAY_SCORES_PROBABILITIES);
static_assert(static_cast<int>(ScoresOutput::kMeanProbabilities) == HEADWAY_SCORES_MEAN_PROBABILITIES);
static_assert(Window::kOpen == HEADWAY_OPEN);

}  // namespace

headway_attention_rules default_rules() noexcept {
  headway_attention_rules rules{};
  rules.scale = std::numeric_limits<float>::quiet_NaN();
  rules.window_left = rules.window_right = HEADWAY_OPEN;
  return rules;
}

std::optional<float> optional_scale(float scale) { return std::isnan(scale) ? std::nullopt : std::optional(scale); }

AttentionRules rules_of(const headway_attention_rules& rules) {
  require(rules.reserved == 0, "rules.reserved is ", rules.reserved, ", expected 0");
  AttentionRules result;
  result.scale = optional_scale(rules.scale);
  result.softcap = rules.softcap;
  result.window = {rules.window_left, rules.window_right};
  result.causal = enum_of(rules.causal, Causal::kLastKey, "causal");
  result.mask = enum_of(rules.mask, MaskKind::kAdditive, "mask");
  result.key_mask = enum_of(rules.key_mask, MaskKind::kAdditive, "key_mask");
  result.mask_polarity = enum_of(rules.mask_polarity, MaskPolarity::kTrueHides, "mask_polarity");
  result.key_lengths = rules.key_lengths != 0;
  result.empty_row = enum_of(rules.empty_row, EmptyRow::kNan, "empty_row");
  result.scores_output = enum_of(rules.scores_output, ScoresOutput::kMeanProbabilities, "scores_output");
  return result;
}

}  // namespace headway::c_api
