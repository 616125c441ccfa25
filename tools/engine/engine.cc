// A step: what the scheduler chose, through the decoder, and one token for each sequence that is due.
#include "tools/engine/engine.h"

#include <chrono>
#include <sstream>

#include "headway/error.h"
#include "tools/engine/sampler.h"

namespace headway::engine {
namespace {

SchedulerLimits limits_of(const Decoder& decoder, const DecoderLimits& limits) {
  return {limits.max_tokens, std::min(limits.max_batch, limits.max_tokens), decoder.max_length()};
}

}  // namespace

Engine::Engine(const std::string& folder, const EngineOptions& options, const Threads& threads)
    : decoder_(folder, options.decoder, threads),
      pool_(options.decoder.blocks, options.decoder.block_size),
      scheduler_(limits_of(decoder_, options.decoder), &pool_),
      logits_(static_cast<std::size_t>(options.decoder.max_batch * decoder_.config().vocab)) {}

void Engine::submit(const Request& request) {
  for (const std::int32_t id : request.prompt) {
    detail::require(id >= 0 && id < decoder_.config().vocab, "request ", request.id, ": prompt has token ", id,
                    ", expected below vocab_size = ", decoder_.config().vocab);
  }
  scheduler_.submit(request);
}

std::vector<Sequence> Engine::step() {
  const auto begin = std::chrono::steady_clock::now();
  const Batch& batch = scheduler_.next();
  rows_.clear();
  for (const std::int64_t b : batch.sampled) rows_.push_back(batch.query_starts[static_cast<std::size_t>(b) + 1] - 1);
  decoder_.run(batch, rows_, logits_.data());

  const auto vocab = static_cast<std::size_t>(decoder_.config().vocab);
  std::vector<std::int32_t> chosen;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Sequence& sequence = *batch.rows[static_cast<std::size_t>(batch.sampled[i])].sequence;
    chosen.push_back(next_token({logits_.data() + i * vocab, vocab}, sequence.request.sampling, sequence.length()));
  }
  ++steps_;
  tokens_ += static_cast<std::int64_t>(batch.tokens.size());
  generated_ += static_cast<std::int64_t>(chosen.size());
  std::vector<Sequence> done = scheduler_.finish(chosen);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return done;
}

std::string Engine::summary() const {
  std::ostringstream text;
  text << steps_ << " steps, " << tokens_ << " tokens computed, " << generated_ << " generated in " << seconds_
       << " s (" << static_cast<double>(generated_) / seconds_ << " a second), " << scheduler_.preempted()
       << " requests driven out, " << pool_.available() << " of " << pool_.size() << " blocks free";
  return text.str();
}

}  // namespace headway::engine
