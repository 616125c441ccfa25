// The ordered table of implementations: the first that neither refuses nor knows a better one runs. Knows only their
// names.
#include "ops/attention/implementation.h"

namespace headway {
namespace {

std::string never(const AttentionSpec&) { return {}; }

constexpr ImplementationEntry kTable[] = {
    {"few_queries", few_queries_why_impossible, few_queries_why_not_preferred, make_few_queries},
    {"bf16_pairs", bf16_pairs_why_impossible, bf16_pairs_why_not_preferred, make_bf16_pairs},
    {"tiled", tiled_why_impossible, tiled_why_not_preferred, make_tiled},
    {"onednn_tiles", onednn_tiles_why_impossible, never, make_onednn_tiles},
    {"reference", reference_why_impossible, never, make_reference},
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
