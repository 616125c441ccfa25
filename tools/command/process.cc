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

/// As a shell takes it: in quotes where it is not made of plain characters.
std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string g_command_line;

}  // namespace

void keep_command_line(int argc, const char* const* argv) {
  g_command_line = "headway";
  for (int i = 1; i < argc; ++i) g_command_line += ' ' + shell_word(argv[i]);
}

const std::string& command_line() { return g_command_line; }

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
