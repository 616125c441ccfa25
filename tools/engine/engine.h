// The loop of an engine: schedule, run the decoder, choose tokens.
#pragma once

#include <string>
#include <vector>

#include "tools/engine/block_pool.h"
#include "tools/engine/decoder.h"
#include "tools/engine/scheduler.h"

namespace headway::engine {

struct EngineOptions {
  DecoderLimits decoder;
};

class Engine {
 public:
  Engine(const std::string& folder, const EngineOptions& options, const Threads& threads);

  /// Throws Error kInvalidArgument when it could never be run.
  void submit(const Request& request);
  bool idle() const { return scheduler_.idle(); }
  /// One call of the decoder; the requests that are done by it.
  std::vector<Sequence> step();
  /// Steps, tokens and their rate, preemptions.
  std::string summary() const;

 private:
  Decoder decoder_;
  BlockPool pool_;
  Scheduler scheduler_;
  std::vector<float> logits_;
  std::vector<std::int64_t> rows_;
  std::int64_t steps_ = 0, tokens_ = 0, generated_ = 0;
  double seconds_ = 0;
};

}  // namespace headway::engine
