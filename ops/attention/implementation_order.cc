// The ordered table of implementations: the first that can run a spec and is preferred for it, runs. Knows only their
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

}  // namespace headway
