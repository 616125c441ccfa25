// Every attention that a layer or a model runs, shown to a tool one after the other with its log-sum-exp. Decides
// nothing about what is made of it; keeps nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headway/attention.h"
#include "headway/attention_observer.h"

namespace headway::tools {

/// One attention as it is about to run. Views hold only while it is shown.
struct SeenAttention {
  std::string name;  ///< of the node, or what the observer was told for a layer
  std::string op;    ///< of the node; empty for a layer
  const AttentionSpec& spec;
  const AttentionArgs& args;  ///< with log_sum_exp, which was computed; out and scores are not written yet
};

/// Shows what runs on this thread while it lives. Takes the memory of one attention's output and of its log-sum-exp.
class AttentionCapture final : public AttentionObserver {
 public:
  using Show = std::function<void(const SeenAttention&)>;
  /// `name` stands where no node of a graph runs.
  AttentionCapture(std::string name, const Threads& threads, Show show);

  void before_run(const AttentionSpec& spec, const AttentionArgs& args) override;
  std::int64_t seen() const { return seen_; }

 private:
  std::string name_;
  const Threads& threads_;
  Show show_;
  std::int64_t seen_ = 0;
};

/// What position a query has among the keys: p = i + offset, and whether it has one at all. A row of cross attention
/// has none: there is neither causality nor a window, and keys are not as many as queries.
struct Positions {
  bool defined = true;
  std::int64_t offset = 0;
  std::int64_t keys = 0;  ///< that have positions: without those that were appended to be seen by all
};
Positions positions_of(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch);

}  // namespace headway::tools
