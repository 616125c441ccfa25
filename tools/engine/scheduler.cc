// A step is filled request by request; one that does not get its blocks drives out younger ones.
#include "tools/engine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "headway/error.h"

namespace headway::engine {

void Scheduler::submit(Request request) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  detail::require(prompt > 0, "request ", request.id, ": the prompt is empty");
  detail::require(request.max_new_tokens > 0, "request ", request.id, ": max_new_tokens is ", request.max_new_tokens,
                  ", expected at least 1");
  // The last token is never put into the cache.
  const std::int64_t most = std::min(limits_.max_length, pool_->size() * pool_->block_size() + 1);
  detail::require(prompt <= most && request.max_new_tokens <= most - prompt, "request ", request.id, ": ", prompt,
                  " prompt tokens and ", request.max_new_tokens, " new ones, expected at most ", most, " in all");
  Sequence sequence;
  sequence.tokens = request.prompt;
  sequence.request = std::move(request);
  sequence.arrival = arrivals_++;
  waiting_.push_back(std::move(sequence));
}

void Scheduler::preempt(std::list<Sequence>::iterator sequence) {
  std::erase_if(batch_.rows, [&](const Batch::Row& row) {
    if (row.sequence != &*sequence) return false;
    left_ += row.count;
    return true;
  });
  pool_->release(&sequence->blocks);
  sequence->cached = 0;
  waiting_.push_front(std::move(*sequence));
  running_.erase(sequence);
  ++preempted_;
}

/// The next `count` tokens of a running request, if need be in the place of younger ones. False when it gave up its
/// own.
bool Scheduler::place(std::list<Sequence>::iterator sequence, std::int64_t count) {
  while (!pool_->grow(sequence->cached + count, &sequence->blocks)) {
    const auto youngest = std::prev(running_.end());
    const bool itself = youngest == sequence;
    preempt(youngest);
    if (itself) return false;
  }
  batch_.rows.push_back({&*sequence, count});
  left_ -= count;
  return true;
}

void Scheduler::admit() {
  while (left_ > 0 && !waiting_.empty() && static_cast<std::int64_t>(running_.size()) < limits_.max_batch) {
    const std::int64_t count = std::min(left_, waiting_.front().length());
    if (pool_->missing(count, 0) > pool_->available()) return;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    place(std::prev(running_.end()), count);
  }
}

const Batch& Scheduler::next() {
  batch_ = Batch();
  left_ = limits_.max_tokens;
  const std::int64_t before = preempted_;
  for (const bool decodes : {true, false}) {
    for (auto at = running_.begin(); at != running_.end() && left_ > 0;) {
      const auto sequence = at++;
      const std::int64_t pending = sequence->length() - sequence->cached;
      if ((pending == 1) != decodes) continue;
      // Giving up its own blocks it is the last one, and `at` the end.
      if (!place(sequence, std::min(pending, left_))) break;
      at = std::next(sequence);  // what came after it may be gone
    }
  }
  // What has just been driven out would come back at once.
  if (preempted_ == before) admit();
  fill_batch();
  return batch_;
}

void Scheduler::fill_batch() {
  batch_.query_starts = {0};
  for (const Batch::Row& row : batch_.rows) {
    const Sequence& s = *row.sequence;
    batch_.tokens.insert(batch_.tokens.end(), s.tokens.begin() + s.cached, s.tokens.begin() + s.cached + row.count);
    batch_.query_starts.push_back(static_cast<std::int32_t>(batch_.tokens.size()));
    batch_.lengths.push_back(static_cast<std::int32_t>(s.cached + row.count));
    batch_.table_width = std::max(batch_.table_width, static_cast<std::int64_t>(s.blocks.size()));
    if (s.cached + row.count == s.length()) {
      batch_.sampled.push_back(static_cast<std::int64_t>(batch_.lengths.size()) - 1);
    }
  }
  for (const Batch::Row& row : batch_.rows) {
    std::vector<std::int32_t> blocks = row.sequence->blocks;
    blocks.resize(static_cast<std::size_t>(batch_.table_width), 0);
    batch_.block_table.insert(batch_.block_table.end(), blocks.begin(), blocks.end());
  }
}

std::vector<Sequence> Scheduler::finish(const std::vector<std::int32_t>& sampled) {
  detail::require(sampled.size() == batch_.sampled.size(), "sampled has ", sampled.size(), " tokens, expected ",
                  batch_.sampled.size());
  for (const Batch::Row& row : batch_.rows) row.sequence->cached += row.count;
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    batch_.rows[static_cast<std::size_t>(batch_.sampled[i])].sequence->tokens.push_back(sampled[i]);
  }
  batch_ = Batch();
  std::vector<Sequence> done;
  for (auto at = running_.begin(); at != running_.end();) {
    const auto sequence = at++;
    const std::vector<std::int32_t>& stop = sequence->request.stop;
    const bool stopped = sequence->generated() > 0 && std::count(stop.begin(), stop.end(), sequence->tokens.back()) > 0;
    if (!stopped && sequence->generated() < sequence->request.max_new_tokens) continue;
    pool_->release(&sequence->blocks);
    done.push_back(std::move(*sequence));
    running_.erase(sequence);
  }
  return done;
}

}  // namespace headway::engine
