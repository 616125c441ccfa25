// A file that appears whole or not at all. Knows nothing of its contents.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace headway {

/// Writes to a temporary file beside `path`; commit() renames it, anything else removes it. A path that names a device
/// or a pipe is written straight, since replacing it would be wrong.
class AtomicFile {
 public:
  /// Throws kIo when the folder cannot be written.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws kIo.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Flushes to the disk and puts the file in its place. Throws kIo.
  void commit();

 private:
  [[noreturn]] void fail_io(const char* what);
  void close_and_remove();

  std::string path_;
  std::string temporary_;  // empty when written straight
  int file_ = -1;
};

/// Writes `bytes` as the whole of a file: afterwards it is there entirely, or the old one is. A device or a pipe is
/// written straight. Throws kIo.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace headway
