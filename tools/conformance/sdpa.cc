// Cases of scaled_dot_product_attention: one config to one call. Knows the layout of configs.json, not how it is run.
#include <fmt/core.h>

#include "runtime/base/check.h"
#include "tools/conformance/conformance.h"

namespace headway::tools {
namespace {

using nlohmann::json;

Dims dims_of(const json& list) {
  const auto sizes = list.get<std::vector<std::int64_t>>();
  return Dims(std::span(sizes));
}

// A mask over memory laid out as torch had it.
struct StridedMask {
  ConstTensorView view;
  std::shared_ptr<Tensor> storage;
};

// The file may hold a mask before torch expanded it: it is expanded here, with stride 0 where it was stride 0 there.
// Any other strides are rebuilt by copying the elements to where they were.
StridedMask as_torch_had_it(const ConstTensorView& mask, const json& config) {
  if (!mask || !config.contains("attn_mask_expanded_to") || config["attn_mask_expanded_to"].is_null())
    return {mask, {}};
  const ConstTensorView expanded = mask.broadcast_to(dims_of(config["attn_mask_expanded_to"]));
  if (!config.contains("attn_mask_strides") || config["attn_mask_strides"].is_null()) return {expanded, {}};
  const Dims strides = dims_of(config["attn_mask_strides"]);
  require(strides.rank() == expanded.rank(), "attn_mask_strides has ", strides.rank(), " entries, expected ",
          expanded.rank());
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;  // 1 GiB of f32
  bool same = true;
  std::int64_t extent = 1;
  bool fits = expanded.count() <= kMaxElements;
  for (int i = 0; i < expanded.rank(); ++i) {
    require(strides[i] >= 0 && strides[i] <= (std::int64_t{1} << 30), "attn_mask_strides has ", strides[i],
            ", expected 0 or more");
    if (expanded.dims[i] > 1) {
      std::int64_t reach = 0;
      same = same && strides[i] == expanded.strides[i];
      fits = fits && !__builtin_mul_overflow(expanded.dims[i] - 1, strides[i], &reach) &&
             !__builtin_add_overflow(extent, reach, &extent) && extent <= kMaxElements;
    }
  }
  if (same || expanded.count() == 0) return {ConstTensorView(mask.data, mask.type, expanded.dims, strides), {}};
  require(fits, "attn_mask_strides ", strides, " of ", expanded.dims, " need memory for more than ", kMaxElements,
          " elements, expected at most that");
  auto storage = std::make_shared<Tensor>(mask.type, Dims{extent});
  const TensorView view(storage->view().data, mask.type, expanded.dims, strides);
  copy_elements(expanded, view);
  return {view, storage};
}

std::string describe(const SdpaCall& call) {
  std::string out = fmt::format("sdpa q={} k={}", text(call.query.dims), text(call.key.dims));
  if (call.value.dims.back() != call.key.dims.back()) out += fmt::format(" Dv={}", call.value.dims.back());
  if (call.attn_mask) {
    out += fmt::format(" {}-mask={}", type_name(call.attn_mask.type), text(call.attn_mask.dims));
    bool expanded = false;
    for (int i = 0; i < call.attn_mask.rank(); ++i) {
      expanded = expanded || (call.attn_mask.strides[i] == 0 && call.attn_mask.dims[i] > 1);
    }
    if (expanded) out += " expanded";
  }
  if (call.variant.causal) out += " causal";
  if (call.variant.scale) out += fmt::format(" scale={:.4g}", *call.variant.scale);
  return out;
}

}  // namespace

Case sdpa_case(const CaseTensors& tensors, const json& config) {
  SdpaCall call;
  call.query = tensors.required("query");
  call.key = tensors.required("key");
  call.value = tensors.required("value");
  for (const ConstTensorView* view : {&call.query, &call.key, &call.value}) {
    require(view->rank() >= 2, "case ", tensors.prefix(), " has a query, key or value of rank ", view->rank(),
            ", expected at least 2");
  }
  const StridedMask mask = as_torch_had_it(tensors.optional("attn_mask"), config);
  call.attn_mask = mask.view;
  call.variant.causal = config.value("is_causal", false);
  if (config.contains("scale") && config["scale"].is_number()) call.variant.scale = config["scale"].get<float>();
  Case out;
  out.id = tensors.prefix().substr(0, tensors.prefix().size() - 1);
  out.description = describe(call);
  out.run = [tensors, call, storage = mask.storage](const Execution& execution) {
    return judge(call_sdpa(call, execution), tensors.required("output"), {});
  };
  return out;
}

}  // namespace headway::tools
