// The sizes of a layer to be measured, and the options and presets that choose them. Knows no weights.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace CLI {
class App;
}

namespace headway::tools {

struct LayerSizes {
  std::string preset;
  std::int64_t embed_dim = 0;
  std::int64_t seq = 0;
  std::int64_t batch = 1;
  bool causal = false;
  DataType type = DataType::kF32;  ///< of inputs, weights and output: f32 or bf16
  std::vector<std::int64_t> heads;
};

/// Adds --preset, --embed-dim, --seq, --batch, --causal, --type and --heads.
void add_size_options(CLI::App* command, LayerSizes* sizes);

/// Fills in what the preset says and the line does not. Throws kInvalidArgument for a preset that is not known, a size
/// that is missing, or a head count that does not divide the width, with both numbers. `one_head_count`: the preset's
/// own head count rather than a sweep of them.
void complete_sizes(LayerSizes* sizes, bool one_head_count);

nlohmann::json to_json(const LayerSizes& sizes);
/// What to say after the f32 FMA peak: bf16 products may pass it. Empty for f32.
std::string type_note(const LayerSizes& sizes);

}  // namespace headway::tools
