// A file that appears whole or not at all. Knows nothing of its contents.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace headway {

/// Writes to a temporary file beside the target; commit() renames it, anything else removes it. A link stays, and what
/// it leads to is written. A path that names a device or a pipe is written straight, since replacing it would be wrong.
class AtomicFile {
 public:
  /// Throws kIo when the file cannot be written there, kInvalidArgument for a folder or a socket.
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
  void create_temporary();  // file_ stays -1, with errno, where that fails
  [[noreturn]] void fail_io(const char* what);
  void close_and_remove();

  std::string path_;       // as the caller named it
  std::string target_;     // links followed
  std::string temporary_;  // empty when written straight
  int slot_ = -1;          // in the list of temporary files
  int file_ = -1;
};

/// Writes `bytes` as the whole of a file: afterwards it is there entirely, or the old one is. A device or a pipe is
/// written straight. Throws kIo.
void write_file_atomically(const std::string& path, std::string_view bytes);

/// Throws what writing a file there would throw at once, and leaves everything as it is: for a look before long work.
void check_writable(const std::string& path);

/// Removes the temporary files of this process. For a signal handler that ends the process: calls only what is safe in
/// one, and leaves AtomicFiles that cannot be committed.
void remove_temporary_files() noexcept;

}  // namespace headway
