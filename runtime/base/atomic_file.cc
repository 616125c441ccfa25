// Temporary file, fsync, rename. See atomic_file.h.
#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/file_kind.h"
#include "runtime/base/printable.h"
#include "runtime/base/temporary_list.h"

namespace headway {
namespace {

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  fail(ErrorCode::kIo, printable(path), ": cannot write: ", std::strerror(error));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

struct Target {
  std::string path;      // links followed
  bool special = false;  // a device or a pipe
};

/// Where a write to `path` ends up. A link may lead to a file that is not there yet.
Target target_of(const std::string& path) {
  require(path.find('\0') == std::string::npos, printable(path), ": holds a NUL, expected a file name");
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    require(!S_ISDIR(status.st_mode) && !S_ISSOCK(status.st_mode), printable(path), ": is ", file_kind(status.st_mode),
            ", expected a file name");
    if (!S_ISREG(status.st_mode)) return {path, true};
  } else if (errno != ENOENT) {
    fail_to_write(path, errno);
  }
  constexpr int kMaxLinks = 40;  // as Linux
  Target target{path};
  for (int links = 0;; ++links) {
    std::array<char, PATH_MAX> link;
    const ssize_t length = ::readlink(target.path.c_str(), link.data(), link.size());
    if (length < 0) return target;
    if (links == kMaxLinks) fail_to_write(path, ELOOP);
    const std::string to(link.data(), static_cast<std::size_t>(length));
    target.path = to.starts_with('/') ? to : folder_of(target.path) + to;
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const Target target = target_of(path);
  target_ = target.path;
  if (target.special) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    create_temporary();
  }
  if (file_ < 0) fail_to_write(path_, errno);
}

void AtomicFile::create_temporary() {
  static std::atomic<unsigned> counter{0};
  // A name is taken when an earlier process of the same id was killed.
  do {
    temporary_ = folder_of(target_) + ".headway-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    slot_ = remember_temporary(temporary_);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) forget_temporary(slot_);
  } while (file_ < 0 && errno == EEXIST);
}

AtomicFile::~AtomicFile() { close_and_remove(); }

void AtomicFile::close_and_remove() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  forget_temporary(slot_);
  slot_ = -1;
}

void AtomicFile::fail_io(const char* what) {
  const int error = errno;
  close_and_remove();
  fail(ErrorCode::kIo, printable(path_), ": ", what, ": ", std::strerror(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  // Linux writes at most 2 GiB a call.
  constexpr std::size_t kChunkBytes = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), std::min(bytes.size(), kChunkBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (!temporary_.empty() && ::fsync(file_) != 0) fail_io("cannot flush");
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) fail_io("cannot close");
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io("cannot rename");
  temporary_.clear();
  forget_temporary(slot_);
  slot_ = -1;
}

void check_writable(const std::string& path) {
  const Target target = target_of(path);
  if (!target.special) {
    const AtomicFile tried(path);
  } else if (::access(path.c_str(), W_OK) != 0) {
    // Not opened: a pipe's reader would take that for the whole of what it is to get.
    fail_to_write(path, errno);
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace headway
