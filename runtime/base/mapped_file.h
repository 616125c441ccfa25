// A whole file mapped read-only: what every reader of files opens. Decides which files are none that can be read;
// knows nothing of formats.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace headway {

/// Unmaps when it goes. A file that another process shortens while it is mapped is beyond its protection.
class MappedFile {
 public:
  /// Throws kIo when it cannot be opened or mapped, and for folders, devices, pipes and sockets, of which none is
  /// waited for; kInvalidArgument for a Git LFS pointer, which stands for a file that was not fetched.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  /// Lets go of the memory that reading `part` has filled; the next reader fills it again.
  void advise_unneeded(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace headway
