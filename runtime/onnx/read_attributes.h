// A node's attributes as this library's. Knows no operator.
#pragma once

#include "headway/operator.h"
#include "runtime/onnx/scope.h"

namespace headway::importer {

/// Numbers, texts and lists of numbers as they are. Tensors, graphs and the rest have no place in Attributes: they
/// become texts that say what they are, so that an operator that asks for one says why it cannot have it. Throws
/// kInvalidArgument for an attribute of no type.
Attributes read_attributes(const AttributeMap& attributes);

}  // namespace headway::importer
