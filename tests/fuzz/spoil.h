// Makes right files wrong: a model by its structure (an input less, an axis of 2^40, a type that does not fit, a
// cycle), any file by its bytes. Knows no reader.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "tests/fuzz/dice.h"

namespace headway::fuzz {

/// One to three changes.
void spoil_model(Dice* dice, onnx::ModelProto* model);
/// One to four changes; at most 1 MB more.
void spoil_bytes(Dice* dice, std::string* bytes);

}  // namespace headway::fuzz
