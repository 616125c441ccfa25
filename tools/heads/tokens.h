// Names of the positions: lists of tokens from files or from a model's integer inputs, and which list an axis takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/graph.h"
#include "tools/heads/capture.h"
#include "tools/heads/measures.h"

namespace headway::tools {

class TokenLists {
 public:
  /// A line a token; of a .json file an array of strings. Throws kIo where it cannot be read, kInvalidArgument where it
  /// has no tokens.
  void add_file(const std::string& path);
  /// Row `batch` of every input of integers [B, S] whose name ends in input_ids, as numbers.
  void add_model_inputs(const Graph& graph, const std::vector<ConstTensorView>& inputs, std::int64_t batch);

  /// An axis takes the first list that has as many tokens. Queries that have none take those of the keys at their
  /// positions, as those do that continue a sequence.
  HeadTokens of(const AttentionSpec& spec, const Positions& positions, const std::string& separator);
  /// Throws kInvalidArgument when a file has a list that no axis took.
  void check_used() const;

 private:
  struct List {
    std::string path;  // empty: of the model
    std::vector<std::string> tokens;
    bool used = false;
  };
  std::vector<std::string> of_length(std::int64_t length);

  std::vector<List> lists_;
  std::vector<std::string> axes_;  // what was asked for
};

}  // namespace headway::tools
