// Reading back what was written: every type, ranks 0 to 8, strides, empty tensors, misaligned data, atomic replacement.
#include "headway/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/atomic_file.h"
#include "tests/support/scratch_file.h"

namespace headway {
namespace {

Tensor numbered(DataType type, const Dims& dims) {
  Tensor tensor(type, dims);
  const std::size_t bytes = static_cast<std::size_t>(tensor.count()) * size_bytes(type);
  for (std::size_t i = 0; i < bytes; ++i) {
    tensor.view().data[i] = static_cast<std::byte>(type == DataType::kBool ? i % 2 : i * 7 + 1);
  }
  return tensor;
}

void expect_same(const ConstTensorView& got, const ConstTensorView& expected) {
  ASSERT_EQ(got.type, expected.type);
  ASSERT_EQ(got.dims, expected.dims);
  const std::size_t bytes = static_cast<std::size_t>(expected.count()) * size_bytes(expected.type);
  if (bytes > 0) {
    EXPECT_EQ(std::memcmp(got.data, expected.data, bytes), 0);
  }
}

TEST(Safetensors, EveryTypeAndRankSurvives) {
  const DataType types[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16, DataType::kI8,
                            DataType::kU8,  DataType::kI32, DataType::kI64, DataType::kBool};
  const Dims shapes[] = {{}, {1}, {7}, {2, 3}, {3, 0, 2}, {2, 1, 3}, {1, 2, 1, 3, 1, 1, 2, 1}};
  std::map<std::string, Tensor> tensors;
  std::map<std::string, ConstTensorView> views;
  for (const DataType type : types) {
    for (const Dims& dims : shapes) {
      const std::string key = std::string(type_name(type)) + " \"\\\n\u00e9 " + std::to_string(tensors.size());
      views[key] = tensors.emplace(key, numbered(type, dims)).first->second.view();
    }
  }
  const ScratchFile scratch;
  const std::map<std::string, std::string> metadata = {{"made by", "a \"test\""}, {"empty", ""}};
  write_safetensors(scratch.path(), views, metadata);

  const SafetensorsFile file = SafetensorsFile::open(scratch.path());
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.names().size(), views.size());
  for (const auto& [key, view] : views) {
    expect_same(file.tensor(key), view);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.tensor(key).data) % size_bytes(view.type), 0u);
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, scratch.bytes().data(), 8);
  EXPECT_EQ(header_bytes % 8, 0u);
}

TEST(Safetensors, NoTensorsAtAll) {
  const ScratchFile scratch;
  write_safetensors(scratch.path(), {});
  EXPECT_TRUE(SafetensorsFile::open(scratch.path()).names().empty());
}

TEST(Safetensors, StridedViewsAreWrittenAsTheirElements) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const ConstTensorView base = view_of(std::as_const(values).data(), {2, 3, 4});
  const ScratchFile scratch;
  write_safetensors(scratch.path(), {{"transposed", base.permuted({2, 0, 1})}, {"slice", base.sliced(1, 1, 2)}});
  const SafetensorsFile file = SafetensorsFile::open(scratch.path());
  ASSERT_EQ(file.tensor("transposed").dims, (Dims{4, 2, 3}));
  const float* transposed = file.tensor("transposed").as<float>();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) EXPECT_EQ(transposed[i * 6 + j], static_cast<float>(j * 4 + i));
  }
  EXPECT_EQ(file.tensor("slice").as<float>()[5], 17.0f);
}

TEST(Safetensors, MisalignedDataIsCopiedToAlignedMemory) {
  // 59 bytes of header leave the data at an odd address.
  for (int spaces = 0; spaces < 8; ++spaces) {
    const std::string header = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" +
                               std::string(static_cast<std::size_t>(spaces), ' ');
    const float values[] = {1.5f, -2.25f};
    std::string bytes = with_length(header.size(), header);
    bytes.append(reinterpret_cast<const char*>(values), sizeof values);
    const ScratchFile scratch(bytes);
    const SafetensorsFile file = SafetensorsFile::open(scratch.path());
    const ConstTensorView view = file.tensor("t");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % alignof(float), 0u);
    EXPECT_EQ(view.as<float>()[0], 1.5f);
    EXPECT_EQ(view.as<float>()[1], -2.25f);
  }
}

TEST(Safetensors, ViewsOutliveACopyOfTheFileObject) {
  const ScratchFile scratch;
  const Tensor tensor = numbered(DataType::kI32, {3});
  write_safetensors(scratch.path(), {{"t", tensor.view()}});
  auto first = std::make_unique<SafetensorsFile>(SafetensorsFile::open(scratch.path()));
  const SafetensorsFile second = *first;
  first.reset();
  expect_same(second.tensor("t"), tensor.view());
}

TEST(Safetensors, MissingTensorIsNamed) {
  const ScratchFile scratch;
  write_safetensors(scratch.path(), {});
  try {
    SafetensorsFile::open(scratch.path()).tensor("query");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"query\""), std::string::npos);
  }
}

// Files in the scratch file's folder that carry its name: more than one means that a temporary file was left behind.
int files_named_like(const std::string& path) {
  int count = 0;
  const std::filesystem::path whole(path);
  for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path())) {
    count += entry.path().filename().string().rfind(whole.filename().string(), 0) == 0;
  }
  return count;
}

TEST(Safetensors, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const ScratchFile scratch("old");
  const Tensor tensor = numbered(DataType::kF32, {4});
  ConstTensorView broken = tensor.view();
  broken.dims = {-4};
  EXPECT_THROW(write_safetensors(scratch.path(), {{"t", broken}}), Error);
  EXPECT_THROW(write_safetensors(scratch.path(), {{"__metadata__", tensor.view()}}), Error);
  EXPECT_EQ(scratch.bytes(), "old");
  EXPECT_EQ(files_named_like(scratch.path()), 1);

  write_safetensors(scratch.path(), {{"t", tensor.view()}});
  expect_same(SafetensorsFile::open(scratch.path()).tensor("t"), tensor.view());
  EXPECT_EQ(files_named_like(scratch.path()), 1);
}

TEST(Safetensors, ImpossiblePlacesAreIoErrors) {
  for (const std::string& path : {std::string("/nonexistent/out.safetensors"), std::string("")}) {
    try {
      write_safetensors(path, {});
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
    }
  }
  EXPECT_THROW(write_safetensors(::testing::TempDir(), {}), Error);
}

TEST(Safetensors, AnyBytesCanBeWrittenTheSameWay) {
  const ScratchFile scratch("old");
  write_file_atomically(scratch.path(), "new\n");
  EXPECT_EQ(scratch.bytes(), "new\n");
  EXPECT_EQ(files_named_like(scratch.path()), 1);
}

TEST(Safetensors, ADeviceIsWrittenNotReplaced) {
  write_safetensors("/dev/null", {});
  struct stat status = {};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

}  // namespace
}  // namespace headway
