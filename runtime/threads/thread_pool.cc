// Rounds, signals and sleep; threads started late, and anew after a fork. See thread_pool.h.
#include "runtime/threads/thread_pool.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/threads/usable_cpus.h"

namespace headway {
namespace {

constexpr std::uint32_t kAsleep = std::uint32_t{1} << 31;
constexpr std::uint32_t kStop = kAsleep - 1;
constexpr std::uint32_t kLastRound = kStop - 1;

// Longer than the gap between two operators of a run, shorter than what a neighbour on the core would notice.
constexpr auto kSpin = std::chrono::microseconds(30);
// A limit on threads may be lifted while the process runs, but asking costs a system call.
constexpr int kCallsBeforeRetry = 1000;

thread_local bool inside_tasks = false;

class InsideTasks {
 public:
  InsideTasks() { inside_tasks = true; }
  ~InsideTasks() { inside_tasks = false; }
};

std::atomic<std::uint32_t> forks{0};

/// How many forks lie between the first process and this one. The handler is registered by whoever asks first.
std::uint32_t fork_count() {
  static const bool kRegistered = [] {
    const int error = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    if (error != 0) fail(ErrorCode::kOutOfMemory, "pthread_atfork failed with error ", error);
    return true;
  }();
  static_cast<void>(kRegistered);
  return forks.load(std::memory_order_relaxed);
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Watches for `happened` for a short time.
template <class Happened>
void spin(Happened happened) {
  constexpr int kLooksPerClock = 32;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (happened()) return;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
}

/// Signals of the process are for threads of the host: a thread that starts inherits this mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

bool inside_pool_tasks() { return inside_tasks; }

int ThreadPool::create_thread(pthread_t* thread, void* (*main)(void*), void* argument) {
  return pthread_create(thread, nullptr, main, argument);
}

ThreadPool::ThreadPool(int workers, CreateThread create)
    : workers_(workers),
      create_(create),
      // With more threads than CPUs whoever watches takes the time of whoever works.
      spins_(workers <= usable_cpus()),
      team_(std::make_unique<Worker[]>(static_cast<std::size_t>(workers))),
      owner_(fork_count() << 1),
      shares_(workers) {
  for (int w = 0; w < workers; ++w) {
    team_[w].pool = this;
    team_[w].id = w;
  }
}

ThreadPool::~ThreadPool() {
  // The threads of a parent are not here to be joined.
  if (owner_.load(std::memory_order_acquire) >> 1 != fork_count()) return;
  for (int w = 1; w <= started_; ++w) call(&team_[w], kStop);
  for (int w = 1; w <= started_; ++w) pthread_join(team_[w].thread, nullptr);
}

void ThreadPool::run(std::int64_t tasks, TaskFunction fn, void* context) {
  if (workers_ == 1 || tasks <= 1 || inside_tasks || !take()) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(context, task, 0);
    return;
  }
  start_threads(static_cast<int>(std::min<std::int64_t>(workers_, tasks)) - 1);
  GuardedTasks guarded(fn, context, workers_);
  for (std::int64_t base = 0; base < tasks; base += TaskShares::kMaxTasks) {
    run_round(base, std::min(tasks - base, TaskShares::kMaxTasks), &guarded);
  }
  release();
  guarded.rethrow();
}

/// True when the threads are this call's until release().
bool ThreadPool::take() {
  const std::uint32_t busy = fork_count() << 1 | 1;
  std::uint32_t owner = owner_.load(std::memory_order_relaxed);
  do {
    if (owner == busy) return false;
  } while (!owner_.compare_exchange_weak(owner, busy, std::memory_order_acquire, std::memory_order_relaxed));
  if (owner >> 1 != busy >> 1) {
    // A fork since the last call: no thread is here, and a call that was on belongs to the parent.
    started_ = 0;
    retry_calls_ = 0;
    for (int w = 1; w < workers_; ++w) team_[w].signal.store(0, std::memory_order_relaxed);
  }
  return true;
}

void ThreadPool::release() { owner_.store(fork_count() << 1, std::memory_order_release); }

/// Sees to it that workers 1 … last_worker have threads, as far as they can be had.
void ThreadPool::start_threads(int last_worker) {
  if (started_ >= last_worker) return;
  if (retry_calls_ > 0) {
    --retry_calls_;
    return;
  }
  const SignalsBlocked blocked;
  for (; started_ < last_worker; ++started_) {
    Worker& worker = team_[started_ + 1];
    if (create_(&worker.thread, thread_main, &worker) != 0) {
      retry_calls_ = kCallsBeforeRetry;
      return;
    }
  }
}

void ThreadPool::run_round(std::int64_t base, std::int64_t tasks, GuardedTasks* guarded) noexcept {
  round_ = round_ == kLastRound ? 1 : round_ + 1;
  base_ = base;
  guarded_ = guarded;
  unfinished_.store(static_cast<std::uint32_t>(tasks), std::memory_order_relaxed);
  shares_.deal(round_, tasks);
  const auto callers = static_cast<int>(std::min<std::int64_t>(started_ + 1, tasks));
  for (int w = 1; w < callers; ++w) call(&team_[w], round_);
  {
    const InsideTasks inside;
    work(round_, 0);
  }
  wait_for_tasks();
}

void ThreadPool::work(std::uint32_t round, int worker) noexcept {
  shares_.work(
      round, worker, [&](std::int64_t task) { guarded_->run(base_ + task, worker); },
      [&](int n) {
        const auto done = static_cast<std::uint32_t>(n);
        if (unfinished_.fetch_sub(done, std::memory_order_acq_rel) - done == kAsleep) unfinished_.notify_one();
      });
}

/// Returns when no task is unfinished: all are claimed, so this is as long as the longest of them.
void ThreadPool::wait_for_tasks() noexcept {
  const auto done = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (done()) return;
  if (spins_) spin(done);
  if (done()) return;
  std::uint32_t left = unfinished_.fetch_or(kAsleep, std::memory_order_acq_rel) | kAsleep;
  while (left != kAsleep) {
    unfinished_.wait(left, std::memory_order_acquire);
    left = unfinished_.load(std::memory_order_acquire);
  }
}

void ThreadPool::call(Worker* worker, std::uint32_t signal) noexcept {
  if (worker->signal.exchange(signal, std::memory_order_acq_rel) & kAsleep) worker->signal.notify_one();
}

/// Waits for a signal other than `seen`.
std::uint32_t ThreadPool::next_round(Worker* self, std::uint32_t seen) const noexcept {
  std::uint32_t signal = seen;
  const auto called = [&] { return (signal = self->signal.load(std::memory_order_acquire)) != seen; };
  if (called()) return signal;
  if (spins_) spin(called);
  const std::uint32_t asleep = seen | kAsleep;
  if (signal != seen || !self->signal.compare_exchange_strong(signal, asleep, std::memory_order_acq_rel)) return signal;
  do {
    self->signal.wait(asleep, std::memory_order_acquire);
    signal = self->signal.load(std::memory_order_acquire);
  } while (signal == asleep);
  return signal;
}

void* ThreadPool::thread_main(void* worker) {
  auto* const self = static_cast<Worker*>(worker);
#if defined(__linux__)
  char name[16];
  std::snprintf(name, sizeof(name), "headway-%d", self->id % 1000000);
  pthread_setname_np(pthread_self(), name);
#endif
  inside_tasks = true;
  for (std::uint32_t seen = 0;;) {
    seen = self->pool->next_round(self, seen);
    if (seen == kStop) return nullptr;
    self->pool->work(seen, self->id);
  }
}

}  // namespace headway
