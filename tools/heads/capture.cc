// See capture.h.
#include "tools/heads/capture.h"

#include <utility>

#include "headway/running_node.h"
#include "ops/attention/visibility.h"

namespace headway::tools {

AttentionCapture::AttentionCapture(std::string name, const Threads& threads, Show show)
    : name_(std::move(name)), threads_(threads), show_(std::move(show)) {}

/// The attention is run here once more for its log-sum-exp, as the caller's own run asks for none.
void AttentionCapture::before_run(const AttentionSpec& spec, const AttentionArgs& args) {
  AttentionSpec plain = spec;
  plain.scores_output = ScoresOutput::kNone;
  const Attention attention(plain, {"tiled"});  // no path rounds the exps that it sums less
  Tensor out(spec.type, args.out.dims);
  Tensor log_sum_exp(DataType::kF32, {spec.batch, spec.num_heads, spec.query_len});
  AttentionArgs own = args;
  own.scores = {};
  own.out = out.view();
  own.log_sum_exp = log_sum_exp.view();
  const AlignedBuffer workspace(attention.workspace_bytes(threads_.workers()));
  attention.run(own, workspace.data(), threads_);
  ++seen_;
  const Node* const node = running_node();
  show_({node ? node->name : name_, node ? node->op : std::string(), plain, own});
}

Positions positions_of(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch) {
  Positions positions;
  positions.keys = spec.key_len - spec.always_visible_keys;
  AttentionSpec causal = spec;
  causal.window = {};
  if (spec.causal == Causal::kNone) {
    if (!args.offsets && positions.keys != spec.query_len)
      return {.defined = false, .offset = 0, .keys = positions.keys};
    causal.causal = args.offsets ? Causal::kOffset : Causal::kTopLeft;
  }
  positions.offset = Visibility(causal, args, batch).last();
  return positions;
}

}  // namespace headway::tools
