// Exceptions as codes. The message is kept in memory of the thread, so that keeping it cannot fail.
#include "ops/c_api/guarded.h"

#include <cstdio>
#include <exception>
#include <new>

#include "headway/error.h"

namespace headway::c_api {
namespace {

constexpr std::size_t kMaxMessageBytes = 512;  // a message of Error has less
thread_local char last_error[kMaxMessageBytes] = "";

headway_status keep(headway_status status, const char* message) noexcept {
  std::snprintf(last_error, kMaxMessageBytes, "%s", message);
  return status;
}

headway_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return HEADWAY_INVALID_ARGUMENT;
    case ErrorCode::kUnsupported:
      return HEADWAY_UNSUPPORTED;
    case ErrorCode::kIo:
      return HEADWAY_IO;
    case ErrorCode::kInternal:
      return HEADWAY_INTERNAL;
    case ErrorCode::kOutOfMemory:
      return HEADWAY_OUT_OF_MEMORY;
  }
  return HEADWAY_INTERNAL;
}

}  // namespace

headway_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return keep(HEADWAY_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return keep(HEADWAY_INTERNAL, error.what());
  } catch (...) {
    return keep(HEADWAY_INTERNAL, "an exception of another kind, which a host's pool may have thrown");
  }
}

}  // namespace headway::c_api

const char* headway_last_error(void) { return headway::c_api::last_error; }
