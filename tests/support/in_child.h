// Runs something in a forked child, which must come to its end in time. Knows no threads.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace headway::testing {

/// Empty when `work` returned true in the child; else what happened instead. A child that hangs is ended.
template <class Work>
std::string fault_in_child(Work work) {
  constexpr unsigned kSeconds = 60;
  const pid_t child = fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(kSeconds);
    bool good = false;
    try {
      good = work();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "waitpid failed";
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "the child hangs"
                                       : "the child died of signal " + std::to_string(WTERMSIG(status));
  }
  return WEXITSTATUS(status) == 0 ? "" : "wrong in the child";
}

}  // namespace headway::testing
