// See output.h.
#include "tools/command/output.h"

#include <cerrno>
#include <cstring>

namespace headway::tools {
namespace {

int first_error = 0;  // of the standard output; 0: none yet

void note_failure() {
  if (first_error == 0) first_error = errno != 0 ? errno : EIO;
}

}  // namespace

void write_text(std::FILE* to, std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), to) == text.size();
  if (!written && to == stdout) note_failure();
}

bool output_failed() { return first_error != 0; }

std::string flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) note_failure();
  if (first_error == 0) return "";
  return std::string("cannot write to the standard output: ") + std::strerror(first_error);
}

}  // namespace headway::tools
