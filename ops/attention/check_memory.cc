// Which tensors of a run must not share memory. Knows no spec.
#include "ops/attention/check_memory.h"

#include "runtime/base/memory_overlap.h"

namespace headway {

void check_aliasing(const AttentionArgs& args) {
  const struct {
    const char* name;
    const ConstTensorView& view;
  } inputs[] = {{"query", args.query},    {"key", args.key},           {"value", args.value},
                {"mask", args.mask},      {"key_mask", args.key_mask}, {"key_lengths", args.key_lengths},
                {"offsets", args.offsets}};
  check_apart("scores", args.scores, "out", args.out);
  for (const auto& input : inputs) {
    check_apart("out", args.out, input.name, input.view);
    check_apart("scores", args.scores, input.name, input.view);
  }
  check_no_self_overlap("out", args.out);
  check_no_self_overlap("scores", args.scores);
}

}  // namespace headway
