// Sets what running_node() returns. Knows no session.
#pragma once

#include "headway/running_node.h"

namespace headway {

/// `node` runs on this thread as long as this lives.
class RunningNode {
 public:
  explicit RunningNode(const Node& node);
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;
  RunningNode& operator=(const RunningNode&) = delete;

 private:
  const Node* before_;
};

}  // namespace headway
