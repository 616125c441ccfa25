// Where heads come from: a layer, the core alone, or all attention of a model, on tensors from files. Decides the
// options of `heads` and `view`; shows each attention as it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/command/attention_call.h"
#include "tools/command/execution.h"
#include "tools/heads/capture.h"
#include "tools/heads/tokens.h"
#include "tools/model/model_inputs.h"

namespace headway::tools {

struct HeadSourceOptions {
  std::string model_path;  ///< empty: call
  ModelInputOptions inputs;
  AttentionCallOptions call;
  std::vector<std::string> token_paths;
  std::string separator;
  std::int64_t batch = 0;
  ExecutionOptions execution;
};

void add_head_source_options(CLI::App* command, HeadSourceOptions* options);
/// Every file that the source reads.
std::vector<std::string> files_read(const HeadSourceOptions& options);

/// What was looked into, in words.
struct HeadSource {
  std::string what;                ///< "model.onnx: opset 17, …" or "weights.safetensors: 12 heads"
  std::vector<std::string> notes;  ///< one line each: inputs, what was fused, attention that could not be seen
};

/// One attention with what is known of it.
struct ShownAttention {
  const SeenAttention& seen;
  HeadTokens tokens;
  Positions positions;
};

/// Runs the source once and shows its attention in the order of the run. Throws kInvalidArgument for options that
/// contradict one another, a batch entry that there is not, tokens that fit nothing, and a model without attention.
HeadSource show_heads(const HeadSourceOptions& options, const std::function<void(const ShownAttention&)>& show);

}  // namespace headway::tools
