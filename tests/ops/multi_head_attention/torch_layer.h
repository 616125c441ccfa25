// A case of torch.nn.MultiheadAttention as specification, weights and arguments of the layer. Knows the names and axes
// of the files, computes nothing.
#pragma once

#include "headway/multi_head_attention.h"
#include "tests/support/torch_cases.h"

namespace headway::testing {

struct TorchLayer {
  MultiHeadAttentionSpec spec;
  MultiHeadAttentionWeights weights;
  MultiHeadAttentionArgs args;  ///< without outputs
};
TorchLayer make_torch_layer(const nlohmann::json& config, const TorchCase& tensors);

/// Dims of the scores of a layer.
Dims score_dims(const TorchLayer& layer);

/// [S, E], [B, S, E] or [S, B, E] as [B, S, E].
template <class View>
View batch_first(const nlohmann::json& config, const View& view) {
  if (!config["batched"].get<bool>()) return view.reshaped(Dims{1, view.dims[0], view.dims[1]});
  return config["batch_first"].get<bool>() ? view : view.permuted({1, 0, 2});
}

}  // namespace headway::testing
