// libFuzzer on the reader of safetensors: any bytes are a file whose every tensor can be read, or are refused with an
// Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headway/safetensors.h"

namespace {

/// A file in memory, at a path that the reader can open.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile memory(data, size);
  unsigned sum = 0;
  try {
    const auto file = headway::SafetensorsFile::open(memory.path());
    for (const std::string& name : file.names()) {
      const headway::ConstTensorView view = file.tensor(name);
      const std::size_t bytes = headway::tensor_bytes(view.type, view.dims);
      for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<unsigned>(view.data[i]);
    }
  } catch (const headway::Error&) {
    // What a refusal looks like.
  }
  volatile unsigned read = sum;  // so that the reads are not left out
  static_cast<void>(read);
  return 0;
}
