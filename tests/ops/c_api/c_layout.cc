// Where the fields of headway_tensor lie when dlpack.h was not included. See dlpack_test.cc.
#include <cstddef>

#include "headway/headway.h"

namespace headway::testing {

extern const std::size_t kOwnLayout[8];
const std::size_t kOwnLayout[8] = {offsetof(headway_tensor, data),        offsetof(headway_tensor, device),
                                   offsetof(headway_tensor, ndim),        offsetof(headway_tensor, dtype),
                                   offsetof(headway_tensor, shape),       offsetof(headway_tensor, strides),
                                   offsetof(headway_tensor, byte_offset), sizeof(headway_tensor)};

}  // namespace headway::testing
