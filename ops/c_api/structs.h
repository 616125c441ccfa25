// Structs that say their size, so that headers and libraries of other releases of one major version understand each
// other: fields that a caller does not have keep their defaults, fields that this library does not have must be 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "runtime/base/check.h"

namespace headway::c_api {

/// A struct is this large at least: its first field is its size.
inline constexpr std::size_t kMinStructBytes = sizeof(std::size_t);

/// Writes `defaults` to a struct that is `struct_size` bytes for its owner.
template <class Struct>
void init(Struct* to, std::size_t struct_size, Struct defaults) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0);
  if (to == nullptr || struct_size < kMinStructBytes) return;
  defaults.struct_size = struct_size;
  std::memset(static_cast<void*>(to), 0, struct_size);
  std::memcpy(static_cast<void*>(to), &defaults, std::min(struct_size, sizeof(Struct)));
}

/// What a caller's struct says, in this release's form. Throws kInvalidArgument naming `what`.
template <class Struct>
Struct read(const Struct* from, const char* what, Struct defaults) {
  require(from != nullptr, what, " is null");
  const std::size_t size = from->struct_size;
  constexpr std::size_t kMaxStructBytes = 1 << 16;  // beyond it the field holds something else
  require(size >= kMinStructBytes && size <= kMaxStructBytes, what, " has struct_size ", size, ", expected ",
          sizeof(Struct), " as its _init function sets it");
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    require(bytes[i] == 0, what, " sets fields of a later release: its struct_size is ", size, ", that of this one ",
            sizeof(Struct));
  }
  std::memcpy(static_cast<void*>(&defaults), from, std::min(size, sizeof(Struct)));
  return defaults;
}

}  // namespace headway::c_api
