// Arithmetic on the elements of short integer lists, whose elements may be sizes that are not known: what shape
// arithmetic is made of. Knows the operators by name; decides nothing about types or dims.
#pragma once

#include <optional>

#include "headway/operator.h"

namespace headway {

/// The elements of the result of an elementwise operator; nullopt where they do not follow from those of its inputs.
std::optional<DimList> element_arithmetic(const char* op, const InferContext& node);

}  // namespace headway
