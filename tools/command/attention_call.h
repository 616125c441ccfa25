// The options of a layer, or of the core alone, on tensors from a file: what attend, heads and view are given. Decides
// how they are read; says nothing of what is made of the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/safetensors.h"
#include "tools/command/execution.h"
#include "tools/conformance/torch_call.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headway::tools {

struct AttentionCallOptions {
  std::string weights_path;  ///< empty: the core alone
  std::string prefix;
  std::string input_path;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool causal = false;
  bool sequence_first = false;
  bool zero_attention = false;
  float scale = 0;
  CLI::Option* scale_option = nullptr;
  float softcap = 0;
  std::vector<std::int64_t> window;
};

/// Adds --weights, --prefix, --input, --heads, --kv-heads, --causal, --sequence-first, --zero-attention, --scale,
/// --softcap and --window. Returns --input, which a command may require.
CLI::Option* add_attention_call_options(CLI::App* command, AttentionCallOptions* options);

/// Throws kInvalidArgument for a tensor of the file that is no input of attention.
void check_input_names(const SafetensorsFile& file);

/// Runs the layer, or without weights the core. Throws kInvalidArgument naming the option or tensor and both numbers.
CallResult call_attention(const AttentionCallOptions& options, WeightsOutput weights, const SafetensorsFile& input,
                          const ExecutionOptions& execution);

}  // namespace headway::tools
