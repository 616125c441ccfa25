// The observer of a thread. While one is told, it sees nothing of what it runs itself.
#include "ops/attention/observer.h"

#include <utility>

namespace headway {
namespace {

thread_local AttentionObserver* g_observer = nullptr;

/// Puts the observer back, also when it throws.
class Telling {
 public:
  Telling() : observer_(std::exchange(g_observer, nullptr)) {}
  ~Telling() { g_observer = observer_; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  AttentionObserver* observer() const { return observer_; }

 private:
  AttentionObserver* observer_;
};

}  // namespace

AttentionObserver::AttentionObserver() : before_(std::exchange(g_observer, this)) {}
AttentionObserver::~AttentionObserver() { g_observer = before_; }

void observe_attention(const AttentionSpec& spec, const AttentionArgs& args) {
  if (g_observer == nullptr) return;
  const Telling telling;
  telling.observer()->before_run(spec, args);
}

}  // namespace headway
