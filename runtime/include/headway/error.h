// The one exception of the library. Knows nothing of tensors or operators.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "headway/export.h"

namespace headway {

enum class ErrorCode {
  kInvalidArgument,  ///< the caller passed something that cannot be right
  kUnsupported,      ///< right, but not something this build or machine can do
  kIo,               ///< a file could not be read or written
  kInternal,         ///< a fault of this library
  kOutOfMemory,      ///< memory that cannot be had; the message has the number of bytes
};

// Importing, fusing, planning, running, reading, writing and looking up by name report std::bad_alloc as kOutOfMemory
// and leave every object as it was; so does the making of an Error whose message finds no memory. Building a Graph or a
// Registry and making texts may let std::bad_alloc itself through.

/// What every function of the library throws. The message names the argument and both numbers ("mask has 36 keys,
/// expected key_len = 32"), is one line, and does not end in a full stop.
class HEADWAY_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;
  ~Error() override;
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

namespace detail {  // not part of the API

/// Throws Error(code) with the text as its message, kOutOfMemory when the text is cut short for want of memory. A
/// function of the library, so that the headers compile without exceptions.
[[noreturn]] HEADWAY_API void throw_error(ErrorCode code, const std::ostringstream& text);

/// Throws Error(code) with the parts written one after the other.
template <class... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw_error(code, text);
}

/// Throws kInvalidArgument with the parts as its message unless `ok`. Nothing is formatted when `ok`.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]] {
    fail(ErrorCode::kInvalidArgument, parts...);
  }
}

}  // namespace detail

}  // namespace headway
