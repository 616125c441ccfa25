// What a model is fed: tensors from files, or random ones of given shapes. Decides what a free dim is when nobody says.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headway/graph.h"
#include "headway/safetensors.h"

namespace CLI {
class App;
}

namespace headway::tools {

struct ModelInputOptions {
  std::vector<std::string> files;                                ///< F.safetensors, or name=F.npy
  std::vector<std::string> shapes;                               ///< name=2,128
  std::optional<std::size_t> memory_limit_bytes = std::nullopt;  ///< of a random tensor; absent: the machine's memory
};

/// Adds --inputs (unless `shapes_only`) and --shape.
void add_model_input_options(CLI::App* command, ModelInputOptions* options, bool shapes_only);

class ModelInputs {
 public:
  /// One tensor per input of the graph, in its order. Throws kInvalidArgument for a name that is no input and a
  /// shape that it refuses.
  ModelInputs(const Graph& graph, const ModelInputOptions& options);
  const std::vector<ConstTensorView>& views() const { return views_; }
  /// One line per input: "input_ids i64 [2, 128] random, 0 to 999".
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::deque<SafetensorsFile> files_;
  std::deque<Tensor> tensors_;
  std::vector<ConstTensorView> views_;
  std::vector<std::string> lines_;
};

/// The types and dims alone, for plans without data.
std::vector<TensorInfo> model_input_infos(const Graph& graph, const std::vector<std::string>& shapes);

}  // namespace headway::tools
