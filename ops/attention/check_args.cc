// What must hold of each tensor of a run before anything is read or written: presence, type, dims, values of lengths
// and offsets. Aliasing is in check_memory.cc. Knows no implementation.
#include "ops/attention/check_args.h"

#include "ops/attention/check_memory.h"
#include "ops/attention/spec.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// Larger offsets would overflow position arithmetic, and put every key out of sight or in it anyway.
constexpr std::int64_t kLargestOffset = std::int64_t{1} << 59;

template <class View>
void require_present(const char* argument, const View& view, bool expected, const char* field) {
  if (expected) {
    require(view.present, argument, " is absent, but ", field, " asks for it");
  } else {
    require(!view.present, argument, " is given, but ", field, " does not ask for it");
  }
}

template <class View>
void check_tensor(const char* argument, const View& view, DataType type, const Dims& dims) {
  require(view.present, argument, " is absent, expected ", type_name(type), " ", dims);
  require(view.type == type, argument, " is ", type_name(view.type), ", expected ", type_name(type));
  require(view.dims == dims, argument, " has dims ", view.dims, ", expected ", dims);
  require_memory(argument, view);
}

/// An additive mask is f32, whatever the type; with bf16 tensors it may be bf16 too.
void check_mask_type(const char* argument, const AttentionSpec& spec, MaskKind kind, DataType given) {
  const DataType type = kind == MaskKind::kBool ? DataType::kBool : DataType::kF32;
  const bool also_bf16 = kind == MaskKind::kAdditive && spec.type == DataType::kBF16;
  if (also_bf16 && given == DataType::kBF16) return;
  require(given == type, argument, " is ", type_name(given), ", expected ", type_name(type),
          also_bf16 ? " or bf16" : "");
}

void check_key_mask(const AttentionSpec& spec, const ConstTensorView& mask) {
  require_present("key_mask", mask, spec.key_mask != MaskKind::kNone, "spec.key_mask");
  if (!mask) return;
  check_mask_type("key_mask", spec, spec.key_mask, mask.type);
  require(mask.rank() == 2, "key_mask has rank ", mask.rank(), ", expected 2");
  require(mask.dims[0] == spec.batch, "key_mask has ", mask.dims[0], " rows, expected batch = ", spec.batch);
  require(mask.dims[1] == spec.key_len || mask.dims[1] == spec.key_len - spec.always_visible_keys, "key_mask has ",
          mask.dims[1], " keys, expected key_len = ", spec.key_len);
  require_memory("key_mask", mask);
}

/// A [B] tensor of integers whose values lie in [least, most].
void check_integers(const char* argument, const ConstTensorView& view, const AttentionSpec& spec, std::int64_t least,
                    std::int64_t most) {
  require(view.type == DataType::kI32 || view.type == DataType::kI64, argument, " is ", type_name(view.type),
          ", expected i32 or i64");
  require(view.dims == Dims{spec.batch}, argument, " has dims ", view.dims, ", expected [batch] = [", spec.batch, "]");
  require_memory(argument, view);
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    const std::int64_t at = b * view.strides[0];
    const std::int64_t value = view.type == DataType::kI32 ? view.as<std::int32_t>()[at] : view.as<std::int64_t>()[at];
    require(value >= least && value <= most, argument, "[", b, "] is ", value, ", expected ", least, " to ", most);
  }
}

void check_scores(const AttentionSpec& spec, const AttentionArgs& args) {
  require_present("scores", args.scores, spec.scores_output != ScoresOutput::kNone, "spec.scores_output");
  if (!args.scores) return;
  const bool mean = spec.scores_output == ScoresOutput::kMeanProbabilities;
  check_tensor("scores", args.scores, DataType::kF32,
               mean ? Dims{spec.batch, spec.query_len, spec.key_len}
                    : Dims{spec.batch, spec.num_heads, spec.query_len, spec.key_len});
}

}  // namespace

void check_mask(const AttentionSpec& spec, const ConstTensorView& mask) {
  require_present("mask", mask, spec.mask != MaskKind::kNone, "spec.mask");
  if (!mask) return;
  check_mask_type("mask", spec, spec.mask, mask.type);
  require(mask.rank() >= 1 && mask.rank() <= 4, "mask has rank ", mask.rank(), ", expected 1 to 4");

  const std::int64_t keys = mask.dims.back();
  const std::int64_t before_tail = spec.key_len - spec.always_visible_keys;
  require(keys == 1 || keys == spec.key_len || keys == before_tail || (keys > 1 && keys < spec.key_len), "mask has ",
          keys, " keys, expected key_len = ", spec.key_len);
  const std::int64_t full[3] = {spec.batch, spec.num_heads, spec.query_len};
  const char* const fields[3] = {"batch", "num_heads", "query_len"};
  for (int axis = 0; axis + 1 < mask.rank(); ++axis) {
    const int of_full = 4 - mask.rank() + axis;
    require(mask.dims[axis] == 1 || mask.dims[axis] == full[of_full], "mask has dims ", mask.dims, ": axis ", axis,
            " is ", mask.dims[axis], ", expected 1 or ", fields[of_full], " = ", full[of_full]);
  }
  require_memory("mask", mask);
}

namespace {

void check_query_and_key(const AttentionSpec& spec, const AttentionArgs& args) {
  check_tensor("query", args.query, spec.type, {spec.batch, spec.num_heads, spec.query_len, spec.head_dim});
  check_tensor("key", args.key, spec.type, {spec.batch, *spec.num_kv_heads, spec.key_len, spec.head_dim});
}

/// Masks, lengths and offsets.
void check_visibility(const AttentionSpec& spec, const AttentionArgs& args) {
  check_mask(spec, args.mask);
  check_key_mask(spec, args.key_mask);

  require_present("key_lengths", args.key_lengths, spec.key_lengths, "spec.key_lengths");
  if (args.key_lengths) check_integers("key_lengths", args.key_lengths, spec, 0, spec.key_len);
  if (spec.causal == Causal::kOffset) require(args.offsets.present, "offsets is absent, but Causal::kOffset needs it");
  if (args.offsets) {
    require(takes_offsets(spec), "offsets is given, but only Causal::kOffset or a window without causality takes it");
    check_integers("offsets", args.offsets, spec, -kLargestOffset, kLargestOffset);
  }
}

}  // namespace

void check_score_inputs(const AttentionSpec& spec, const AttentionArgs& args) {
  check_query_and_key(spec, args);
  check_visibility(spec, args);
}

void check_log_sum_exp(const AttentionSpec& spec, const TensorView& log_sum_exp) {
  check_tensor("log_sum_exp", log_sum_exp, DataType::kF32, {spec.batch, spec.num_heads, spec.query_len});
}

void check_args(const AttentionSpec& spec, const AttentionArgs& args) {
  const std::int64_t b = spec.batch;
  check_query_and_key(spec, args);
  check_tensor("value", args.value, spec.type, {b, *spec.num_kv_heads, spec.key_len, *spec.value_head_dim});
  check_tensor("out", args.out, spec.type, {b, spec.num_heads, spec.query_len, *spec.value_head_dim});
  check_scores(spec, args);
  if (args.log_sum_exp) check_log_sum_exp(spec, args.log_sum_exp);
  check_visibility(spec, args);
  check_aliasing(args);
}

void check_workspace(const std::byte* workspace, std::size_t bytes, int workers) {
  constexpr std::size_t kAlignmentBytes = 64;
  if (bytes == 0) return;
  require(workspace != nullptr, "workspace is null, expected ", bytes, " bytes for ", workers, " workers");
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(workspace) % kAlignmentBytes;
  require(misaligned == 0, "workspace is ", misaligned, " bytes past a multiple of ", kAlignmentBytes, ", expected 0");
}

}  // namespace headway
