// What the C API refuses, in which words, and that it then has written nothing.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <string>
#include <thread>

#include "tests/ops/c_api/c_tensor.h"

namespace headway::testing {
namespace {

/// A spec of one head, its tensors, and a run of it; what is wrong with them is the test's.
struct OneHead {
  OneHead() {
    headway_attention_spec_init(&spec);
    spec.query_len = 1, spec.key_len = 2, spec.head_dim = 4;
    headway_attention_args_init(&args);
    args.query = query.get(), args.key = args.value = key.get(), args.out = out.get();
  }
  headway_status run() {
    headway_attention* attention = nullptr;
    EXPECT_EQ(headway_attention_create(&spec, &attention), HEADWAY_OK) << headway_last_error();
    size_t bytes = 0;
    EXPECT_EQ(headway_attention_workspace_bytes(attention, 1, &bytes), HEADWAY_OK);
    void* const workspace = headway_allocate(bytes);
    const headway_status status = headway_attention_run(attention, &args, workspace, nullptr);
    headway_free(workspace);
    headway_attention_destroy(attention);
    return status;
  }
  const Tensor query_data = random_floats({1, 1, 1, 4}, 1), key_data = random_floats({1, 1, 2, 4}, 2);
  Tensor out_data = random_floats({1, 1, 1, 4}, 3);
  CTensor query{query_data.view()}, key{key_data.view()}, out{out_data.view()};
  headway_attention_spec spec;
  headway_attention_args args;
};

void expect_refused(headway_status status, headway_status expected, const std::string& message) {
  EXPECT_EQ(status, expected);
  EXPECT_EQ(headway_last_error(), message);
}

TEST(CErrors, TensorsThatAreNone) {
  OneHead head;
  ASSERT_EQ(head.run(), HEADWAY_OK) << headway_last_error();
  head.args.query = nullptr;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "query is null");
  head.args.query = head.query.get();
  head.key.tensor.device.device_type = 2;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "key is on DLPack device 2, expected 1, the CPU");
  head.key.tensor.device.device_type = 1;
  head.key.tensor.dtype.lanes = 4;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "key has 4 lanes, expected 1");
  head.key.tensor.dtype = {5, 64, 1};
  EXPECT_EQ(head.run(), HEADWAY_UNSUPPORTED);
  head.key.tensor.dtype = {2, 32, 1};
  head.query.tensor.ndim = 9;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "query has 9 dims, expected 0 to 8");
  head.query.tensor.ndim = -1;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "query has -1 dims, expected 0 to 8");
  head.query.tensor.ndim = 4;
  head.query.tensor.byte_offset = 2;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "query is 2 bytes past a multiple of 4, expected 0");
  head.query.tensor.byte_offset = 0;
  int64_t* const shape = head.query.tensor.shape;
  head.query.tensor.shape = nullptr;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "query has 4 dims and no shape");
  head.query.tensor.shape = shape;
  shape[2] = -3;
  EXPECT_EQ(head.run(), HEADWAY_INVALID_ARGUMENT);
  shape[2] = INT64_MAX, shape[1] = INT64_MAX;
  EXPECT_EQ(head.run(), HEADWAY_INVALID_ARGUMENT);
  shape[1] = 1, shape[2] = 2;
  EXPECT_EQ(head.run(), HEADWAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(headway_last_error()).find("query"), std::string::npos) << headway_last_error();
  shape[2] = 1;
  void* const data = head.out.tensor.data;
  head.out.tensor.data = nullptr;
  expect_refused(head.run(), HEADWAY_INVALID_ARGUMENT, "out has 4 elements and no data");
  head.out.tensor.data = data;
  EXPECT_EQ(head.run(), HEADWAY_OK) << headway_last_error();
}

TEST(CErrors, SpecsThatCannotBe) {
  OneHead head;
  headway_attention* const untouched = reinterpret_cast<headway_attention*>(&head);
  headway_attention* attention = untouched;
  head.spec.rules.causal = 5;
  expect_refused(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT,
                 "causal is 5, expected 0 to 4");
  head.spec.rules.causal = HEADWAY_CAUSAL_NONE;
  head.spec.type = 7;
  expect_refused(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT,
                 "type is 7, expected 0 to 3");
  head.spec.type = HEADWAY_I8;
  EXPECT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_UNSUPPORTED);
  head.spec.type = HEADWAY_F32;
  head.spec.head_dim = -4;
  EXPECT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(headway_last_error()).find("head_dim is -4"), std::string::npos) << headway_last_error();
  head.spec.head_dim = 4;
  head.spec.implementation = "fastest";
  EXPECT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT);
  head.spec.implementation = nullptr;
  expect_refused(headway_attention_create(nullptr, &attention), HEADWAY_INVALID_ARGUMENT, "spec is null");
  EXPECT_EQ(attention, untouched) << "a result is not touched on failure";
  expect_refused(headway_attention_create(&head.spec, nullptr), HEADWAY_INVALID_ARGUMENT, "attention is null");
  size_t bytes = 5;
  expect_refused(headway_attention_workspace_bytes(nullptr, 1, &bytes), HEADWAY_INVALID_ARGUMENT, "attention is null");
  ASSERT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_OK);
  expect_refused(headway_attention_workspace_bytes(attention, 0, &bytes), HEADWAY_INVALID_ARGUMENT,
                 "workers is 0, expected at least 1");
  EXPECT_EQ(bytes, 5u);
  expect_refused(headway_attention_explain(attention, nullptr, 3, nullptr), HEADWAY_INVALID_ARGUMENT,
                 "buffer is null, but capacity is 3");
  expect_refused(headway_attention_run(attention, nullptr, nullptr, nullptr), HEADWAY_INVALID_ARGUMENT, "args is null");
  headway_attention_destroy(attention);
  headway_attention_destroy(nullptr);
  headway_threads* threads = nullptr;
  expect_refused(headway_threads_create_host(2, nullptr, nullptr, &threads), HEADWAY_INVALID_ARGUMENT,
                 "parallel_for is null");
  EXPECT_EQ(headway_threads_create_pool(-1, &threads), HEADWAY_INVALID_ARGUMENT);
}

TEST(CErrors, AWorkspaceThatIsMissing) {
  OneHead head;
  head.spec.implementation = "tiled";
  headway_attention* attention = nullptr;
  ASSERT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_OK);
  const std::string before(reinterpret_cast<const char*>(head.out_data.view().data), 16);
  EXPECT_EQ(headway_attention_run(attention, &head.args, nullptr, nullptr), HEADWAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(headway_last_error()).find("workspace is null"), std::string::npos) << headway_last_error();
  EXPECT_EQ(std::memcmp(before.data(), head.out_data.view().data, 16), 0);
  headway_attention_destroy(attention);
}

// A caller compiled against another release of the header.
TEST(CErrors, StructsOfOtherReleases) {
  OneHead head;
  headway_attention* attention = nullptr;
  // Of an earlier one, which ended before always_visible_keys: the fields after it have their defaults.
  headway_attention_spec earlier;
  headway_attention_spec_init_sized(&earlier, offsetof(headway_attention_spec, always_visible_keys));
  earlier.query_len = 1, earlier.key_len = 2, earlier.head_dim = 4;
  earlier.always_visible_keys = 77;  // memory of something else
  earlier.implementation = "nonsense";
  ASSERT_EQ(headway_attention_create(&earlier, &attention), HEADWAY_OK) << headway_last_error();
  headway_attention_destroy(attention);

  struct {
    headway_attention_spec known;
    int64_t later[2];
  } spec;
  headway_attention_spec_init_sized(&spec.known, sizeof(spec));
  EXPECT_EQ(spec.later[0] | spec.later[1], 0);
  spec.known.query_len = 1, spec.known.key_len = 2, spec.known.head_dim = 4;
  ASSERT_EQ(headway_attention_create(&spec.known, &attention), HEADWAY_OK) << headway_last_error();
  headway_attention_destroy(attention);
  spec.later[1] = 1;
  EXPECT_EQ(headway_attention_create(&spec.known, &attention), HEADWAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(headway_last_error()).find("spec sets fields of a later release"), std::string::npos)
      << headway_last_error();

  head.spec.struct_size = 0;
  EXPECT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(headway_last_error()).find("spec has struct_size 0"), std::string::npos);
  head.spec.struct_size = static_cast<size_t>(-1);
  EXPECT_EQ(headway_attention_create(&head.spec, &attention), HEADWAY_INVALID_ARGUMENT);
}

TEST(CErrors, TheLastOneIsTheThreads) {
  EXPECT_EQ(headway_attention_create(nullptr, nullptr), HEADWAY_INVALID_ARGUMENT);
  const std::string here = headway_last_error();
  std::string before, there;
  std::thread([&] {
    before = headway_last_error();
    static_cast<void>(headway_append(nullptr, nullptr, nullptr));
    there = headway_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_EQ(there, "args is null");
  EXPECT_EQ(headway_last_error(), here);
}

}  // namespace
}  // namespace headway::testing
