// DLPack's description of a tensor as a view of ours. Reads no element.
#pragma once

#include "headway/headway.h"
#include "headway/tensor.h"

namespace headway::c_api {

/// An absent view for null. Throws kInvalidArgument naming `what` for what a view cannot be: another device, lanes,
/// more than 8 dims; kUnsupported for an element type that there is not.
TensorView view(const headway_tensor* tensor, const char* what);
/// The same; throws also for null.
TensorView required_view(const headway_tensor* tensor, const char* what);

}  // namespace headway::c_api
