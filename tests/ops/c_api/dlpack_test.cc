// Compiled alone: dlpack.h comes before our own header.
// Where dlpack.h comes first, its DLTensor is what our functions take; where it does not, ours lies as it does.
#include <cstdint>

// As dlpack.h of DLPack 1.0 declares it, which is a contract between binaries.
#define DLPACK_DLPACK_H_
typedef struct {
  std::int32_t device_type;
  std::int32_t device_id;
} DLDevice;
typedef struct {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
} DLTensor;

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "headway/headway.h"

namespace headway::testing {

/// Offsets of the struct of our own, seen from a file that has it: c_layout.cc.
extern const std::size_t kOwnLayout[8];

namespace {

TEST(CTensors, ADlTensorIsTakenAsItIs) {
  static_assert(std::is_same_v<headway_tensor, DLTensor>);
  const std::size_t expected[8] = {offsetof(DLTensor, data),        offsetof(DLTensor, device),
                                   offsetof(DLTensor, ndim),        offsetof(DLTensor, dtype),
                                   offsetof(DLTensor, shape),       offsetof(DLTensor, strides),
                                   offsetof(DLTensor, byte_offset), sizeof(DLTensor)};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(kOwnLayout[i], expected[i]) << "field " << i;
}

}  // namespace
}  // namespace headway::testing
