// Which tensors of a run must not share memory. Knows no spec.
#include "ops/attention/check_memory.h"

#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

struct Named {
  const char* name;
  const ConstTensorView& view;
  ByteRange range = byte_range(view);
};

void check_apart(const Named& written, const Named& other) {
  if (written.range.meets(other.range)) check_apart(written.name, written.view, other.name, other.view);
}

}  // namespace

void check_aliasing(const AttentionArgs& args) {
  const ConstTensorView out_view = args.out, scores_view = args.scores, log_sum_exp_view = args.log_sum_exp;
  const Named out{"out", out_view}, scores{"scores", scores_view}, log_sum_exp{"log_sum_exp", log_sum_exp_view};
  const Named inputs[] = {{"query", args.query},    {"key", args.key},           {"value", args.value},
                          {"mask", args.mask},      {"key_mask", args.key_mask}, {"key_lengths", args.key_lengths},
                          {"offsets", args.offsets}};
  check_apart(scores, out);
  check_apart(log_sum_exp, out);
  check_apart(log_sum_exp, scores);
  for (const Named& input : inputs) {
    check_apart(out, input);
    check_apart(scores, input);
    check_apart(log_sum_exp, input);
  }
  check_no_self_overlap("out", out_view);
  check_no_self_overlap("scores", scores_view);
  check_no_self_overlap("log_sum_exp", log_sum_exp_view);
}

}  // namespace headway
