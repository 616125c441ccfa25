// mmap behind a class. See mapped_file.h.
#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/base/file_kind.h"
#include "runtime/base/printable.h"

namespace headway {
namespace {

// What Git leaves in place of a large file when the large file was not fetched.
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

class Descriptor {
 public:
  // Without O_NONBLOCK opening a named pipe would wait for a writer.
  explicit Descriptor(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  require(path.find('\0') == std::string::npos, printable(path), ": holds a NUL, expected the path of a file");
  const Descriptor file(path);
  const int error = errno;
  struct stat status = {};
  if (file.get() < 0) {
    // A socket cannot even be opened.
    const bool known = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
    fail(ErrorCode::kIo, printable(path),
         ": cannot open: ", known ? std::string("is ") + file_kind(status.st_mode) : std::strerror(error));
  }
  if (::fstat(file.get(), &status) != 0) {
    fail(ErrorCode::kIo, printable(path), ": cannot open: ", std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::kIo, printable(path), ": is ", file_kind(status.st_mode), ", not a regular file");
  }
  size_bytes_ = static_cast<std::size_t>(status.st_size);
  if (size_bytes_ == 0) return;
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) {
    fail(ErrorCode::kIo, printable(path), ": cannot map ", size_bytes_, " bytes: ", std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(mapped);
  if (size_bytes_ >= kLfsPointer.size() && std::memcmp(data_, kLfsPointer.data(), kLfsPointer.size()) == 0) {
    ::munmap(mapped, size_bytes_);
    fail(ErrorCode::kInvalidArgument, printable(path), ": is a Git LFS pointer of ", size_bytes_,
         " bytes, expected the file that it stands for: fetch it with git lfs pull");
  }
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
