// See process.h.
#include "tools/command/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "runtime/base/atomic_file.h"

namespace headway::tools {
namespace {

struct Ending {
  int signal;
  std::string_view line;  ///< made here: a handler may format nothing
};
constexpr Ending kEndings[] = {
    {SIGINT, "headway: stopped by SIGINT\n"},
    {SIGTERM, "headway: stopped by SIGTERM\n"},
    {SIGHUP, "headway: stopped by SIGHUP\n"},
    {SIGXFSZ, "headway: stopped by SIGXFSZ: a file grew beyond the limit of its size\n"},
    {SIGXCPU, "headway: stopped by SIGXCPU: the limit of processor time is used up\n"},
};

// Calls only what POSIX allows in a handler.
void end_process(int signal) {
  remove_temporary_files();
  for (const Ending& ending : kEndings) {
    if (ending.signal != signal) continue;
    static_cast<void>(!::write(STDERR_FILENO, ending.line.data(), ending.line.size()));
  }
  ::_exit(128 + signal);
}

void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // The lowest free descriptor is the one that is closed. For reading only: a write must fail, not vanish.
    if (::open("/dev/null", O_RDONLY) < 0) static_cast<void>(::open("/", O_RDONLY));
  }
}

}  // namespace

void prepare_process() {
  open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  for (const Ending& ending : kEndings) {
    struct sigaction before = {};
    if (::sigaction(ending.signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = end_process;
    // One signal at a time, so that a second does not leave while the first still removes.
    ::sigfillset(&action.sa_mask);
    ::sigaction(ending.signal, &action, nullptr);
  }
}

}  // namespace headway::tools
