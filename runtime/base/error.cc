// The exception's own code, in one library: a program made of several sees one type. Every message is one line of
// bounded length, whatever names from files went into it.
#include "headway/error.h"

#include "runtime/base/bad_alloc.h"
#include "runtime/base/printable.h"

namespace headway {

Error::Error(ErrorCode code, const std::string& message) : std::runtime_error(one_line(message)), code_(code) {}
Error::~Error() = default;

namespace detail {

void throw_error(ErrorCode code, const std::ostringstream& text) try {
  // A stream swallows std::bad_alloc and goes bad: what it holds then is the beginning of a message.
  if (text.bad()) throw_out_of_memory();
  throw Error(code, text.str());
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace detail

}  // namespace headway
