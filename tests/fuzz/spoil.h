// Makes right files wrong: a model by its structure (an input less, an axis of 2^40, a type that does not fit, a
// cycle), any file by its bytes. Knows no reader.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <string>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

/// One to three changes.
void spoil_model(Dice* dice, onnx::ModelProto* model);
/// One to four changes; now and then `max_more` bytes more.
void spoil_bytes(Dice* dice, std::string* bytes, std::size_t max_more = std::size_t{1} << 20);
inline constexpr std::size_t kLittleMore = std::size_t{1} << 14;  ///< for small files, tens of thousands a second

}  // namespace headway::fuzz
