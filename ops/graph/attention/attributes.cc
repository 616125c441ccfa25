// Words to enums, each list on one screen; an unknown word is answered with the list.
#include "ops/graph/attention/attributes.h"

#include <string>
#include <utility>

#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

template <class Enum, std::size_t N>
Enum word(const Attributes& attributes, const char* key, const std::pair<const char*, Enum> (&words)[N],
          Enum otherwise) {
  if (!attributes.has(key)) return otherwise;
  const std::string given = attributes.text(key, "");
  std::string known;
  for (const auto& [text, value] : words) {
    if (given == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  fail(ErrorCode::kInvalidArgument, "attribute ", key, " is \"", given, "\", expected one of ", known);
}

constexpr std::pair<const char*, Causal> kCausalWords[] = {{"none", Causal::kNone},
                                                           {"top_left", Causal::kTopLeft},
                                                           {"bottom_right", Causal::kBottomRight},
                                                           {"offset", Causal::kOffset},
                                                           {"last_key", Causal::kLastKey}};
constexpr std::pair<const char*, MaskPolarity> kPolarityWords[] = {{"true_attends", MaskPolarity::kTrueAttends},
                                                                   {"true_hides", MaskPolarity::kTrueHides}};
constexpr std::pair<const char*, EmptyRow> kEmptyRowWords[] = {{"zero", EmptyRow::kZero}, {"nan", EmptyRow::kNan}};
constexpr std::pair<const char*, ScoresOutput> kScoresWords[] = {
    {"none", ScoresOutput::kNone},
    {"scaled", ScoresOutput::kScaled},
    {"softcapped", ScoresOutput::kSoftcapped},
    {"biased", ScoresOutput::kBiased},
    {"probabilities", ScoresOutput::kProbabilities},
    {"mean_probabilities", ScoresOutput::kMeanProbabilities}};

MaskKind mask_kind(const InferContext& node, std::size_t input, const char* what) {
  if (!has_input(node, input)) return MaskKind::kNone;
  const DataType type = node.inputs[input].type.value_or(DataType::kBool);
  require(type == DataType::kBool || type == DataType::kF32, what, " is ", type_name(type), ", expected bool or f32");
  return type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

}  // namespace

AttentionRules attention_rules_of(const InferContext& node, const MaskInputs& at) {
  const Attributes& a = node.attributes;
  AttentionRules rules;
  if (a.has("semantics")) apply_semantics(a.text("semantics", ""), a.integer("is_causal", 0) != 0, &rules);
  if (a.has("scale")) rules.scale = a.real("scale", 0);
  rules.softcap = a.real("softcap", 0);
  rules.causal = word(a, "causal", kCausalWords, rules.causal);
  rules.window.left = a.integer("window_left", Window::kOpen);
  rules.window.right = a.integer("window_right", Window::kOpen);
  rules.mask_polarity = word(a, "mask_polarity", kPolarityWords, rules.mask_polarity);
  rules.empty_row = word(a, "empty_row", kEmptyRowWords, rules.empty_row);
  rules.scores_output = word(a, "scores", kScoresWords, ScoresOutput::kNone);
  require(node.num_outputs <= 1 || rules.scores_output != ScoresOutput::kNone, "scores is \"none\" but the node has ",
          node.num_outputs, " outputs, expected 1");
  if (node.num_outputs <= 1) rules.scores_output = ScoresOutput::kNone;
  rules.mask = mask_kind(node, at.mask, "mask");
  rules.key_mask = mask_kind(node, at.key_mask, "key_mask");
  rules.key_lengths = has_input(node, at.key_lengths);
  return rules;
}

AttentionOptions attention_options_of(const NodeContext& node) {
  return {.implementation = node.attributes.text("implementation", "")};
}

DimList scores_dims(ScoresOutput mode, const DimList& full) {
  if (mode == ScoresOutput::kMeanProbabilities) return {full[0], full[2], full[3]};
  return full;
}

bool takes_short_mask(const InferContext& node) { return node.attributes.integer("short_mask", 1) != 0; }

void check_mask_dims(const std::string& what, const ValueInfo& mask, const DimList& full, bool may_be_short) {
  if (!mask.dims) return;
  const DimList& dims = *mask.dims;
  require(!dims.empty() && dims.size() <= 4, what, " has rank ", dims.size(), ", expected 1 to 4");
  const Dim& keys = dims.back();
  const bool known = keys.is_number() && full[3].is_number();
  const bool shorter = may_be_short && known && keys.factor > 1 && keys.factor < full[3].factor;
  require(!known || keys.is(1) || keys == full[3] || shorter, what, " has ", keys,
          " keys, expected key_len = ", full[3]);
  constexpr const char* kFields[] = {"batch", "num_heads", "query_len"};
  for (std::size_t axis = 0; axis + 1 < dims.size(); ++axis) {
    const std::size_t at = 4 - dims.size() + axis;
    require(dims[axis].is(1) || may_equal(dims[axis], full[at]), what, " has dims ", dims, ": axis ", axis, " is ",
            dims[axis], ", expected 1 or ", kFields[at], " = ", full[at]);
  }
}

}  // namespace headway
