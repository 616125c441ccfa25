// See bad_alloc.h.
#include "runtime/base/bad_alloc.h"

#include <exception>

#include "headway/error.h"

namespace headway {
namespace {

const std::exception_ptr out_of_memory = std::make_exception_ptr(Error(ErrorCode::kOutOfMemory, "out of memory"));

}  // namespace

void throw_out_of_memory() { std::rethrow_exception(out_of_memory); }

}  // namespace headway
