// A decoder over a paged cache: embedding, layers, logits. One object a model; any mixture of prompts and decodes a
// call. Knows no requests.
#pragma once

#include <memory>
#include <string>

#include "headway/profiler.h"
#include "headway/threads.h"
#include "tools/engine/config.h"
#include "tools/engine/scheduler.h"

namespace headway::engine {

struct DecoderLimits {
  std::int64_t max_tokens = 256;  ///< of a call
  std::int64_t max_batch = 64;    ///< sequences of a call
  std::int64_t blocks = 256;      ///< of the cache of each layer
  std::int64_t block_size = 16;
  DataType cache_type = DataType::kF32;
  bool batch_invariant = false;  ///< a token's logits have the same bits whatever else is in the batch
};

/// Thread-safe for nobody: it owns its activations and its cache.
class Decoder {
 public:
  /// Reads config.json and the weights of a folder as transformers saves them. Throws Error naming file and tensor.
  Decoder(const std::string& folder, const DecoderLimits& limits, const Threads& threads);
  ~Decoder();

  const DecoderConfig& config() const;
  /// Longest sequence: that of the model, or of the cache.
  std::int64_t max_length() const;
  std::int64_t cache_bytes() const;
  std::int64_t parameters() const;
  /// Puts the batch's tokens into the cache and computes `logits` [rows.size(), vocab] behind rows [rows.size()] of
  /// [0, T). Allocates nothing. Throws Error for a token that is not below vocab.
  void run(const Batch& batch, const std::vector<std::int64_t>& rows, float* logits, Profiler* profiler = nullptr);
  /// How a layer is computed.
  std::string explain() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway::engine
