// Owned memory: alignment, size, moving.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "headway/tensor.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/sanitizers.h"

namespace headway {
namespace {

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(AlignedBuffer, Alignment) {
  for (std::size_t bytes : {1u, 63u, 64u, 65u, 4096u, (2u << 20) - 1}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(address(buffer.data()) % 64, 0u) << bytes;
    EXPECT_EQ(buffer.size_bytes(), bytes);
    std::memset(buffer.data(), 1, bytes);
  }
}

TEST(AlignedBuffer, HugePagesFromTwoMegabytes) {
  for (std::size_t bytes : {std::size_t{2} << 20, (std::size_t{2} << 20) + 1, std::size_t{5} << 20}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(address(buffer.data()) % (2u << 20), 0u) << bytes;
    std::memset(buffer.data(), 1, bytes);
  }
}

TEST(AlignedBuffer, EmptyHasNoMemory) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBuffer, MemoryThatCannotBeHadIsToldWithItsBytes) {
  if (testing::kAddressSanitizer || testing::kThreadSanitizer)
    GTEST_SKIP() << "their allocators end the program instead";
  const std::size_t bytes = std::size_t{1} << 62;
  const std::string buffer = testing::error_of([&] { AlignedBuffer{bytes}; }, ErrorCode::kOutOfMemory);
  testing::expect_contains(buffer, std::to_string(bytes) + " bytes");
  const std::string tensor = testing::error_of([&] { Tensor(DataType::kF32, {static_cast<std::int64_t>(bytes / 4)}); },
                                               ErrorCode::kOutOfMemory);
  testing::expect_contains(tensor, std::to_string(bytes) + " bytes");
}

TEST(Tensor, OwnsAndMoves) {
  Tensor a(DataType::kF32, {2, 3});
  EXPECT_EQ(a.count(), 6);
  for (int i = 0; i < 6; ++i) a.data<float>()[i] = static_cast<float>(i);
  const float* memory = a.data<float>();
  const Tensor b = std::move(a);
  EXPECT_EQ(b.data<float>(), memory);
  EXPECT_EQ(b.view().as<float>()[5], 5.0f);
  EXPECT_EQ(b.dims(), (Dims{2, 3}));
  testing::expect_contains(testing::error_of([&] { b.data<std::int64_t>(); }), "f32");
}

TEST(Tensor, EmptyIsAllowed) {
  const Tensor empty(DataType::kI64, {0, 4});
  EXPECT_EQ(empty.count(), 0);
  EXPECT_TRUE(empty.view());
}

}  // namespace
}  // namespace headway
