// A pointer a thread.
#include "runtime/exec/running_node.h"

#include <utility>

namespace headway {
namespace {

thread_local const Node* g_running = nullptr;

}  // namespace

const Node* running_node() { return g_running; }

RunningNode::RunningNode(const Node& node) : before_(std::exchange(g_running, &node)) {}
RunningNode::~RunningNode() { g_running = before_; }

}  // namespace headway
