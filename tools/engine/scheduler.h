// Continuous batching: which tokens of which requests go into the next call. Knows no model.
#pragma once

#include <deque>
#include <list>

#include "tools/engine/block_pool.h"
#include "tools/engine/request.h"

namespace headway::engine {

struct SchedulerLimits {
  std::int64_t max_tokens = 256;  ///< of a step, decodes and prompts together; a longer prompt goes in chunks
  std::int64_t max_batch = 64;    ///< requests under way
  std::int64_t max_length = 0;    ///< of a request, prompt and new tokens
};

/// The tokens of one step, as CachedAttentionArgs takes them.
struct Batch {
  struct Row {
    Sequence* sequence;
    std::int64_t count;  ///< of its tokens, behind those that are cached
  };
  std::vector<Row> rows;
  std::vector<std::int32_t> tokens;        // [T]
  std::vector<std::int32_t> query_starts;  // [B + 1]
  std::vector<std::int32_t> lengths;       // [B]
  std::vector<std::int32_t> block_table;   // [B, table_width]
  std::int64_t table_width = 0;
  /// The rows whose last token is the last one known: it needs logits.
  std::vector<std::int64_t> sampled;
};

/// Oldest first. Every decode of the running requests comes before any prompt, prompts fill what is left of the step.
/// When the blocks run out, the youngest request gives up its own and begins anew later; what it has generated stays.
class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, BlockPool* pool) : limits_(limits), pool_(pool) {}

  /// Throws Error kInvalidArgument naming the request and both numbers when it could never be run.
  void submit(Request request);
  bool idle() const { return waiting_.empty() && running_.empty(); }
  std::int64_t preempted() const { return preempted_; }

  /// The next step; valid until the next call. Empty only when idle.
  const Batch& next();
  /// After the step: the token of each of batch.sampled. Returns the requests that are done by it.
  std::vector<Sequence> finish(const std::vector<std::int32_t>& sampled);

 private:
  bool place(std::list<Sequence>::iterator sequence, std::int64_t count);
  void admit();
  void preempt(std::list<Sequence>::iterator sequence);
  void fill_batch();

  SchedulerLimits limits_;
  BlockPool* pool_;
  std::deque<Sequence> waiting_;
  std::list<Sequence> running_;  // by arrival
  Batch batch_;
  std::int64_t left_ = 0;  // tokens that still fit the step
  std::int64_t arrivals_ = 0, preempted_ = 0;
};

}  // namespace headway::engine
