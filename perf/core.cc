// The attention core alone, at the shapes of real layers, by every implementation that can run them, in f32 and in
// bf16. %peak is the share of f32's peak in both, so that they can be compared; %pairs that of products of bf16 pairs.
#include <benchmark/benchmark.h>

#include <string>

#include "headway/attention.h"
#include "perf/measure.h"
#include "perf/shapes.h"

namespace headway::perf {
namespace {

AttentionSpec spec_of(const CoreShape& shape, DataType type) {
  AttentionSpec spec;
  spec.type = type;
  spec.batch = shape.batch;
  spec.num_heads = shape.num_heads;
  spec.num_kv_heads = shape.num_kv_heads;
  spec.query_len = shape.query_len;
  spec.key_len = shape.key_len;
  spec.head_dim = shape.head_dim;
  spec.causal = shape.causal ? Causal::kBottomRight : Causal::kNone;
  spec.mask = shape.mask ? MaskKind::kAdditive : MaskKind::kNone;
  return spec;
}

void core(benchmark::State& state, const CoreShape& shape, DataType type, const std::string& implementation) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const AttentionSpec spec = spec_of(shape, type);
  const std::int64_t kv_heads = *spec.num_kv_heads;
  const Tensor q = in_type(type, random_tensor({spec.batch, spec.num_heads, spec.query_len, spec.head_dim}, 1.7f, 1));
  const Tensor k = in_type(type, random_tensor({spec.batch, kv_heads, spec.key_len, spec.head_dim}, 1.7f, 2));
  const Tensor v = in_type(type, random_tensor({spec.batch, kv_heads, spec.key_len, spec.head_dim}, 1.7f, 3));
  const Tensor mask = random_tensor({spec.query_len, spec.key_len}, 1.0f, 4);
  Tensor out(type, {spec.batch, spec.num_heads, spec.query_len, spec.head_dim});

  AttentionOptions options;
  options.implementation = implementation;
  const Attention attention(spec, options);
  const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
  AttentionArgs args;
  args.query = q.view();
  args.key = k.view();
  args.value = v.view();
  if (shape.mask) args.mask = mask.view();
  args.out = out.view();

  const PeakBracket peak(threads, type);
  for (auto _ : state) {
    attention.run(args, workspace.data(), threads);
    benchmark::ClobberMemory();
  }
  peak.report(state, static_cast<double>(nominal_attention_flops(attention.spec())));
  state.SetLabel(std::string(attention.implementation()));
}

/// Whether a forced implementation takes this shape: only making the plan tells.
bool can_run(const CoreShape& shape, DataType type, const std::string& implementation) {
  AttentionOptions options;
  options.implementation = implementation;
  try {
    const Attention attention(spec_of(shape, type), options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void register_core() {
  for (const CoreShape& shape : kCoreShapes) {
    for (const DataType type : {DataType::kF32, DataType::kBF16}) {
      for (const std::string& implementation : attention_implementations()) {
        // The oracle in double is no contestant.
        if (implementation == "reference" || !can_run(shape, type, implementation)) continue;
        const std::string suffix = type == DataType::kF32 ? "" : std::string(" ") + headway::type_name(type);
        const std::string name = "core/" + std::string(shape.name) + suffix + "/" + implementation;
        at_worker_counts(benchmark::RegisterBenchmark(name.c_str(), core, shape, type, implementation))
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace headway::perf
