// The exception's own code, in one library: a program made of several sees one type.
#include "headway/error.h"

namespace headway {

Error::Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
Error::~Error() = default;

namespace detail {

void throw_error(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace detail

}  // namespace headway
