// The exception's own code, in one library: a program made of several sees one type. Every message is one line of
// bounded length, whatever names from files went into it.
#include "headway/error.h"

#include "runtime/base/printable.h"

namespace headway {

Error::Error(ErrorCode code, const std::string& message) : std::runtime_error(one_line(message)), code_(code) {}
Error::~Error() = default;

namespace detail {

void throw_error(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace detail

}  // namespace headway
