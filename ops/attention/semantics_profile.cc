// What "torch", "onnx" and "flash" mean by causal, by a mask's true and by an empty row, as one table. Knows no sizes.
#include <string>

#include "headway/attention.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

struct Profile {
  std::string_view name;
  Causal causal;
  MaskPolarity polarity;
  EmptyRow empty_row;
};

constexpr Profile kProfiles[] = {
    // is_causal is anchored at the top left corner.
    {"torch_sdpa", Causal::kTopLeft, MaskPolarity::kTrueAttends, EmptyRow::kZero},
    // Some releases give NaN for an empty row when they return weights; here it is zero in all of them.
    {"torch_mha", Causal::kTopLeft, MaskPolarity::kTrueHides, EmptyRow::kZero},
    // ONNX 1.23: the offset is the past length, or the valid length minus Sq: known at run time only.
    {"onnx", Causal::kOffset, MaskPolarity::kTrueAttends, EmptyRow::kZero},
    {"flash", Causal::kLastKey, MaskPolarity::kTrueAttends, EmptyRow::kZero},
};

}  // namespace

void apply_semantics(std::string_view profile, bool causal, AttentionRules* rules) {
  std::string known;
  for (const Profile& candidate : kProfiles) {
    if (candidate.name == profile) {
      rules->causal = causal ? candidate.causal : Causal::kNone;
      rules->mask_polarity = candidate.polarity;
      rules->empty_row = candidate.empty_row;
      return;
    }
    known += known.empty() ? "" : ", ";
    known += candidate.name;
  }
  fail(ErrorCode::kInvalidArgument, "semantics profile is '", profile, "', expected one of ", known);
}

}  // namespace headway
