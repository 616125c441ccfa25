// A call of the C API as a caller could make it: tensors in memory of exactly their own size, so that a sanitizer sees
// every read and write beside them, and spoils: fields that are not what they should be. Knows no function by name.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "headway/headway.h"
#include "tests/fuzz/dice.h"

namespace headway::fuzz {

/// What a tensor's elements are.
enum class CRole { kFloats, kIndices, kBools, kOut };

class CCall {
 public:
  explicit CCall(Dice* dice) : dice_(*dice) {}

  /// A tensor for a field of a struct, which may be changed by a spoil until make() is called. Indices are in
  /// [0, below).
  void tensor(const headway_tensor** field, int code, int bits, std::vector<std::int64_t> dims, CRole role,
              std::int64_t below = 1);
  void floats(const headway_tensor** field, std::vector<std::int64_t> dims, CRole role = CRole::kFloats) {
    tensor(field, 2, 32, std::move(dims), role);
  }
  void indices(const headway_tensor** field, std::vector<std::int64_t> dims, std::int64_t below) {
    tensor(field, 0, 32, std::move(dims), CRole::kIndices, below);
  }
  /// The elements of the tensor that was made last.
  void values(std::vector<std::int32_t> given) { tensors_.back().given = std::move(given); }

  /// Fields that a spoil may change.
  void number(std::int64_t* field) { numbers_.push_back(field); }
  void choice(std::int32_t* field) { choices_.push_back(field); }
  void real(float* field) { reals_.push_back(field); }
  void size(std::size_t* field) { sizes_.push_back(field); }

  /// Spoils some fields, gives every tensor its memory and sets the fields. A tensor of too many bytes has none.
  void make();
  /// Outputs that changed since make(), by number; empty: none.
  std::string written() const;

 private:
  struct One {
    const headway_tensor** field;
    headway_tensor tensor;
    std::vector<std::int64_t> shape, strides;
    CRole role;
    std::int64_t below;
    std::vector<std::int32_t> given;
    std::vector<std::uint8_t> memory, before;
  };
  void spoil();
  void spoil_tensor(One* one);
  void give_memory(One* one);
  void fill(One* one);

  Dice& dice_;
  std::deque<One> tensors_;
  std::vector<std::int64_t*> numbers_;
  std::vector<std::int32_t*> choices_;
  std::vector<float*> reals_;
  std::vector<std::size_t*> sizes_;
};

}  // namespace headway::fuzz
