// The ordered table of implementations: the first that neither refuses nor knows a better one runs. Knows only their
// names.
#include "ops/attention/implementation.h"

namespace headway {
namespace {

std::string never(const AttentionSpec&) { return {}; }

constexpr ImplementationEntry kTable[] = {
    {"few_queries", few_queries_refusal, few_queries_reluctance, make_few_queries},
    {"bf16_pairs", bf16_pairs_refusal, bf16_pairs_reluctance, make_bf16_pairs},
    {"tiled", tiled_refusal, tiled_reluctance, make_tiled},
    {"onednn_tiles", onednn_tiles_refusal, never, make_onednn_tiles},
    {"reference", reference_refusal, never, make_reference},
};

}  // namespace

std::span<const ImplementationEntry> implementation_table() { return kTable; }

std::vector<std::string> attention_implementations() {
  std::vector<std::string> names;
  for (const ImplementationEntry& entry : kTable) names.emplace_back(entry.name);
  return names;
}

constinit const Zone kZonePack{"pack", "attention"};
constinit const Zone kZoneScores{"scores", "attention"};
constinit const Zone kZoneSoftmax{"softmax", "attention"};
constinit const Zone kZoneContext{"context", "attention"};

}  // namespace headway
