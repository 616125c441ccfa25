// The report as text.
#include <algorithm>
#include <map>

#include "headway/fusion.h"
#include "runtime/base/text_stream.h"

namespace headway {
namespace {

bool is_attention(const FusedGroup& group) { return group.kind == "Attention" || group.kind == "MultiHeadAttention"; }

std::string number(std::int64_t value) { return value > 0 ? std::to_string(value) : "?"; }

}  // namespace

std::int64_t FusionReport::count(const std::string& kind) const {
  return std::count_if(fused.begin(), fused.end(), [&](const FusedGroup& group) {
    return kind == "attention" ? is_attention(group) : group.kind == kind;
  });
}

std::string FusionReport::text() const {
  TextStream out;
  std::map<std::string, int> others;
  for (const FusedGroup& group : fused) {
    if (!is_attention(group)) {
      ++others[group.kind];
      continue;
    }
    out << "fused " << group.kind << " at '" << group.node << "': " << number(group.heads) << " heads";
    if (group.kv_heads != group.heads) out << " on " << number(group.kv_heads);
    out << " of " << number(group.head_dim) << ", mask " << group.mask;
    if (group.weights_output) out << ", weights are an output";
    out << '\n';
  }
  for (const auto& [kind, count] : others) out << "fused " << kind << ": " << count << '\n';
  std::map<std::string, int> natives;
  for (const NativeAttention& one : native) ++natives[one.op];
  for (const auto& [op, count] : natives) out << "native: " << op << ' ' << count << '\n';
  for (const MissedAttention& miss : missed) {
    out << "not fused " << miss.op << " '" << miss.node << "': " << miss.edge << '\n';
  }
  return out.str();
}

}  // namespace headway
