// What a path leads to when it is no regular file, in words for messages.
#pragma once

#include <sys/stat.h>

namespace headway {

/// "a folder", "a pipe", …: of stat's st_mode.
inline const char* file_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a regular file" : "no file";
}

}  // namespace headway
