// What the handles of the C API are, and what their functions share.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "headway/headway.h"
#include "headway/tensor.h"
#include "headway/threads.h"
#include "runtime/base/check.h"

struct headway_threads {
  headway::Threads threads;
};

namespace headway::c_api {

/// `made` to the caller: the last step of a _create.
template <class Handle>
void give(std::unique_ptr<Handle> made, Handle** to) {
  *to = made.release();
}

template <class T>
const T& required(const T* argument, const char* what) {
  require(argument != nullptr, what, " is null");
  return *argument;
}

template <class T>
T& required_result(T* argument, const char* what) {
  require(argument != nullptr, what, " is null");
  return *argument;
}

/// Null is the calling thread alone.
inline Threads threads_of(const headway_threads* threads) {
  return threads == nullptr ? Threads::serial() : threads->threads;
}

/// As the _explain functions promise.
inline void copy_text(const std::string& text, char* buffer, std::size_t capacity, std::size_t* needed) {
  require(buffer != nullptr || capacity == 0, "buffer is null, but capacity is ", capacity);
  if (needed != nullptr) *needed = text.size() + 1;
  if (capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

inline DataType type_of(std::int32_t type, const char* what) {
  switch (type) {
    case HEADWAY_F32:
      return DataType::kF32;
    case HEADWAY_BF16:
      return DataType::kBF16;
    case HEADWAY_F16:
      return DataType::kF16;
    case HEADWAY_I8:
      return DataType::kI8;
    default:
      fail(ErrorCode::kInvalidArgument, what, " is ", type, ", expected ", HEADWAY_F32, " to ", HEADWAY_I8);
  }
}

}  // namespace headway::c_api
