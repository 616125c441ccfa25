// mmap behind a class. See mapped_file.h.
#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/json_reader.h"

namespace headway {

MappedFile::MappedFile(const std::string& path) {
  // Without O_NONBLOCK opening a named pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(ErrorCode::kIo, printable(path), ": cannot open: ", std::strerror(errno));
  struct stat status = {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(file);
    fail(ErrorCode::kIo, printable(path), ": not a regular file");
  }
  size_bytes_ = static_cast<std::size_t>(status.st_size);
  if (size_bytes_ > 0) {
    void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) {
      const int error = errno;
      ::close(file);
      fail(ErrorCode::kIo, printable(path), ": cannot map ", size_bytes_, " bytes: ", std::strerror(error));
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

void MappedFile::advise_unneeded(std::span<const std::byte> part) const {
  if (part.empty()) return;
  // Whole pages, neighbours' shares of the first and the last included: they too only have to be read again.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(part.data() - data_) / page * page;
  const std::size_t end = static_cast<std::size_t>(part.data() - data_) + part.size();
  // A hint: refusal only leaves the memory where it is.
  static_cast<void>(::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED));
}

}  // namespace headway
