// See supervise.h.
#include "tests/fuzz/supervise.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <thread>

namespace headway::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxKinds = 8;

/// What parent and child share.
struct Shared {
  std::atomic<std::uint64_t> next;  // the case that runs
  std::atomic<std::int64_t> done;
  std::atomic<std::int64_t> findings;
  std::atomic<int> kinds;
  char names[kMaxKinds][24];
  std::atomic<std::int64_t> counts[kMaxKinds];

  void count(const std::string& kind) {
    int at = 0;
    while (at < kinds && kind != names[at]) ++at;
    if (at == kMaxKinds) return;
    if (at == kinds) {
      std::strncpy(names[at], kind.c_str(), sizeof(names[at]) - 1);
      ++kinds;
    }
    ++counts[at];
  }
};

void report(Shared* shared, const std::string& reproducer, const std::string& finding) {
  ++shared->findings;
  std::printf("%s: %s\n", reproducer.c_str(), finding.c_str());
  std::fflush(stdout);
}

std::int64_t resident_mb(pid_t child) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(child) + "/statm").c_str(), "r");
  if (file == nullptr) return 0;
  long total = 0, resident = 0;
  const bool read = std::fscanf(file, "%ld %ld", &total, &resident) == 2;
  std::fclose(file);
  return read ? resident * ::sysconf(_SC_PAGESIZE) / (1 << 20) : 0;
}

/// What the child has computed so far: other work on the machine does not make it slow.
double cpu_seconds(pid_t child) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Waits for the child, killing it where a limit is passed. Returns what ended it; empty: it finished.
std::string watch(pid_t child, const Shared& shared, const Limits& limits, Clock::time_point stop) {
  std::uint64_t current = shared.next;
  constexpr int kWaiting = 10;  // times the limit, for a case that waits instead of computing
  Clock::time_point begun = Clock::now();
  double begun_cpu = cpu_seconds(child);
  std::string killed;
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (!killed.empty()) return killed;
      if (WIFSIGNALED(status)) return std::string("crash: ") + ::strsignal(WTERMSIG(status));
      return WEXITSTATUS(status) == 0 ? "" : "crash: exit " + std::to_string(WEXITSTATUS(status));
    }
    const Clock::time_point now = Clock::now();
    if (shared.next != current) {
      current = shared.next;
      begun = now;
      begun_cpu = cpu_seconds(child);
    }
    if (killed.empty()) {
      if (cpu_seconds(child) - begun_cpu > limits.case_seconds ||
          now - begun > std::chrono::seconds(kWaiting * limits.case_seconds)) {
        killed = "takes longer than " + std::to_string(limits.case_seconds) + " s";
      } else if (resident_mb(child) > limits.memory_mb) {
        killed = "takes more than " + std::to_string(limits.memory_mb) + " MB";
      } else if (now > stop) {
        killed = "stop";
      }
      if (!killed.empty()) ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Totals supervise(std::uint64_t first, std::int64_t count, const Limits& limits,
                 const std::function<CaseResult(std::uint64_t)>& run_case,
                 const std::function<std::string(std::uint64_t)>& reproduce) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* shared = new (memory) Shared{};
  shared->next = first;
  const std::uint64_t end = first + static_cast<std::uint64_t>(count);
  const Clock::time_point stop =
      limits.run_seconds > 0 ? Clock::now() + std::chrono::seconds(limits.run_seconds) : Clock::time_point::max();
  while (shared->next < end && shared->findings < limits.max_findings && Clock::now() < stop) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
      for (std::uint64_t n = shared->next; n < end && shared->findings < limits.max_findings; shared->next = ++n) {
        const CaseResult result = run_case(n);
        ++shared->done;
        shared->count(result.kind);
        if (!result.finding.empty()) report(shared, reproduce(n), result.finding);
      }
      std::fflush(nullptr);
      std::_Exit(0);
    }
    const std::string ended = watch(child, *shared, limits, stop);
    if (ended == "stop") break;
    if (ended.empty()) continue;
    report(shared, reproduce(shared->next), ended);
    ++shared->done;
    shared->count("killed");
    ++shared->next;
  }
  const Totals totals{shared->done, shared->findings};
  std::printf("%lld cases:", static_cast<long long>(totals.cases));
  for (int i = 0; i < shared->kinds; ++i) {
    std::printf(" %lld %s,", static_cast<long long>(shared->counts[i]), shared->names[i]);
  }
  std::printf(" %lld findings\n", static_cast<long long>(totals.findings));
  ::munmap(memory, sizeof(Shared));
  return totals;
}

}  // namespace headway::fuzz
