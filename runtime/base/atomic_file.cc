// Temporary file, fsync, rename. See atomic_file.h.
#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/json_reader.h"

namespace headway {

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    require(!S_ISDIR(status.st_mode), printable(path), ": is a folder, expected a file name");
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    static std::atomic<unsigned> counter{0};
    temporary_ = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (file_ < 0) {
    const int error = errno;
    // Nothing of ours exists yet; a file of that name would be somebody else's.
    temporary_.clear();
    fail(ErrorCode::kIo, printable(path_), ": cannot write: ", std::strerror(error));
  }
}

AtomicFile::~AtomicFile() { close_and_remove(); }

void AtomicFile::close_and_remove() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
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
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io("cannot rename");
  temporary_.clear();
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace headway
