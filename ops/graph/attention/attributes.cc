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
                                                           {"offset", Causal::kOffset}};
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

bool is_given(const NodeContext& node, std::size_t input) {
  return input < node.inputs.size() && node.inputs[input].present;
}

MaskKind mask_kind(const NodeContext& node, std::size_t input, const char* what) {
  if (!is_given(node, input)) return MaskKind::kNone;
  const DataType type = node.inputs[input].type;
  require(type == DataType::kBool || type == DataType::kF32, what, " is ", type_name(type), ", expected bool or f32");
  return type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

}  // namespace

AttentionRules attention_rules_of(const NodeContext& node, const MaskInputs& at) {
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
  rules.key_lengths = is_given(node, at.key_lengths);
  return rules;
}

AttentionOptions attention_options_of(const NodeContext& node) {
  return {.implementation = node.attributes.text("implementation", "")};
}

TensorInfo scores_info(const AttentionSpec& spec) {
  if (spec.scores_output == ScoresOutput::kMeanProbabilities) {
    return {DataType::kF32, {spec.batch, spec.query_len, spec.key_len}};
  }
  return {DataType::kF32, {spec.batch, spec.num_heads, spec.query_len, spec.key_len}};
}

}  // namespace headway
