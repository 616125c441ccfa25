// Everything that is refused, with the text that says why; and that a refused run has written nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "ops/attention/implementation.h"
#include "ops/attention/spec.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/target.h"
#include "tests/support/attention_case.h"

namespace headway::testing {
namespace {

/// Expects an Error whose message holds every part.
void expect_error(ErrorCode code, const std::vector<std::string>& parts, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "accepted; expected a message with " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    const std::string text = error.what();
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

AttentionSpec good_spec() {
  AttentionSpec spec;
  spec.batch = 2;
  spec.num_heads = 4;
  spec.num_kv_heads = 2;
  spec.query_len = 5;
  spec.key_len = 32;
  spec.head_dim = 8;
  return spec;
}

void expect_spec_refused(const std::vector<std::string>& parts, const std::function<void(AttentionSpec&)>& change) {
  AttentionSpec spec = good_spec();
  change(spec);
  expect_error(ErrorCode::kInvalidArgument, parts, [&] { const Attention attention(spec); });
}

TEST(SpecRefusals, NameTheFieldAndBothNumbers) {
  expect_spec_refused({"num_heads", "5", "2"}, [](AttentionSpec& s) { s.num_heads = 5; });
  expect_spec_refused({"batch", "-1"}, [](AttentionSpec& s) { s.batch = -1; });
  expect_spec_refused({"query_len", "-3"}, [](AttentionSpec& s) { s.query_len = -3; });
  expect_spec_refused({"key_len", "-4"}, [](AttentionSpec& s) { s.key_len = -4; });
  expect_spec_refused({"head_dim", "-8"}, [](AttentionSpec& s) { s.head_dim = -8; });
  expect_spec_refused({"softcap", "-1"}, [](AttentionSpec& s) { s.softcap = -1; });
  expect_spec_refused({"softcap", "nan"}, [](AttentionSpec& s) { s.softcap = std::nanf(""); });
  expect_spec_refused({"scale", "inf"}, [](AttentionSpec& s) { s.scale = INFINITY; });
  expect_spec_refused({"window.left", "-2"}, [](AttentionSpec& s) { s.window.left = -2; });
  expect_spec_refused({"window.right", "-7"}, [](AttentionSpec& s) { s.window.right = -7; });
  expect_spec_refused({"always_visible_keys", "33", "32"}, [](AttentionSpec& s) { s.always_visible_keys = 33; });
  expect_spec_refused({"num_heads", "mean"}, [](AttentionSpec& s) {
    s.num_kv_heads = s.num_heads = 0;
    s.scores_output = ScoresOutput::kMeanProbabilities;
  });
}

TEST(SpecRefusals, OtherTypesAreUnsupported) {
  AttentionSpec spec = good_spec();
  for (const DataType type : {DataType::kF16, DataType::kF64, DataType::kI8}) {
    spec.type = type;
    expect_error(ErrorCode::kUnsupported, {type_name(type), "f32 or bf16"}, [&] { const Attention attention(spec); });
  }
}

TEST(SpecDefaults, AreFilledIn) {
  AttentionSpec spec = good_spec();
  spec.num_kv_heads.reset();
  const Attention attention(spec);
  EXPECT_EQ(attention.spec().num_kv_heads, 4);
  EXPECT_EQ(attention.spec().value_head_dim, 8);
  EXPECT_FLOAT_EQ(*attention.spec().scale, 0.35355339f);
}

/// A run that asks for every argument, spoiled by `change`.
class ArgRefusals : public ::testing::Test {
 protected:
  ArgRefusals() : problem_(shape()) {}
  static CaseShape shape() {
    CaseShape result;
    result.spec = good_spec();
    result.spec.causal = Causal::kOffset;
    result.spec.mask = MaskKind::kBool;
    result.spec.key_mask = MaskKind::kAdditive;
    result.spec.key_lengths = true;
    result.spec.scores_output = ScoresOutput::kProbabilities;
    result.lengths = {32, 7};
    result.offsets = {0, 27};
    return result;
  }
  void run(const AttentionArgs& args) {
    const Attention attention(problem_.spec());
    const AlignedBuffer workspace(attention.workspace_bytes(1));
    attention.run(args, workspace.data(), Threads::serial());
  }
  void expect_refused(const std::vector<std::string>& parts, const std::function<void(AttentionArgs&)>& change) {
    AttentionArgs args = problem_.args();
    change(args);
    problem_.poison_outputs();
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { run(args); });
    each(problem_.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      ASSERT_TRUE(std::isnan(problem_.out.at(b, h, i, d))) << "written before it was refused";
    });
  }
  /// A view of other dims over memory that is large enough.
  ConstTensorView other(DataType type, const Dims& dims) const {
    return {reinterpret_cast<const std::byte*>(spare_.data()), type, dims};
  }

  AttentionCase problem_;
  std::vector<double> spare_ = std::vector<double>(4096);
};

TEST_F(ArgRefusals, GoodArgumentsAreAccepted) { EXPECT_NO_THROW(run(problem_.args())); }

TEST_F(ArgRefusals, AbsentAndUnasked) {
  expect_refused({"query", "absent"}, [](AttentionArgs& a) { a.query = {}; });
  expect_refused({"value", "absent"}, [](AttentionArgs& a) { a.value = {}; });
  expect_refused({"out", "absent"}, [](AttentionArgs& a) { a.out = {}; });
  expect_refused({"mask", "absent", "spec.mask"}, [](AttentionArgs& a) { a.mask = {}; });
  expect_refused({"key_mask", "absent"}, [](AttentionArgs& a) { a.key_mask = {}; });
  expect_refused({"key_lengths", "absent"}, [](AttentionArgs& a) { a.key_lengths = {}; });
  expect_refused({"offsets", "absent"}, [](AttentionArgs& a) { a.offsets = {}; });
  expect_refused({"scores", "absent"}, [](AttentionArgs& a) { a.scores = {}; });
  expect_refused({"key", "null"}, [](AttentionArgs& a) { a.key.data = nullptr; });
  AttentionSpec spec = good_spec();
  const Attention plain(spec);
  expect_error(ErrorCode::kInvalidArgument, {"scores", "given"},
               [&] { plain.run(problem_.args(), nullptr, Threads::serial()); });
}

TEST_F(ArgRefusals, DimsAndTypes) {
  expect_refused({"key", "[2, 2, 36, 8]", "[2, 2, 32, 8]"}, [&](AttentionArgs& a) {
    a.key = other(DataType::kF32, {2, 2, 36, 8});
  });
  expect_refused({"query", "f64", "f32"}, [&](AttentionArgs& a) { a.query = other(DataType::kF64, {2, 4, 5, 8}); });
  expect_refused({"query", "[2, 4, 5]"}, [&](AttentionArgs& a) { a.query = other(DataType::kF32, {2, 4, 5}); });
  const auto log_sum_exp = [&](DataType type, const Dims& dims) {
    return [this, type, dims](AttentionArgs& a) {
      const ConstTensorView view = other(type, dims);
      a.log_sum_exp = TensorView(const_cast<std::byte*>(view.data), type, dims);
    };
  };
  expect_refused({"log_sum_exp", "[2, 4, 6]", "[2, 4, 5]"}, log_sum_exp(DataType::kF32, {2, 4, 6}));
  expect_refused({"log_sum_exp", "f64", "f32"}, log_sum_exp(DataType::kF64, {2, 4, 5}));
}

/// All tensors are of the spec's type; masks are f32, and beside bf16 tensors also bf16.
TEST_F(ArgRefusals, Mixtures) {
  for (const auto& [type, wrong] :
       {std::pair(DataType::kF32, DataType::kBF16), std::pair(DataType::kBF16, DataType::kF32)}) {
    CaseShape changed = shape();
    changed.spec.type = type;
    changed.spec.mask = MaskKind::kAdditive;
    AttentionCase problem(changed);
    const Attention attention(problem.spec());
    const AlignedBuffer workspace(attention.workspace_bytes(1));
    const auto run = [&](const AttentionArgs& args) { attention.run(args, workspace.data(), Threads::serial()); };
    EXPECT_NO_THROW(run(problem.args()));
    const auto refused = [&](const char* argument, const auto& spoil) {
      AttentionArgs args = problem.args();
      spoil(args);
      expect_error(ErrorCode::kInvalidArgument, {std::string(argument) + " is " + type_name(wrong), type_name(type)},
                   [&] { run(args); });
    };
    refused("query", [&](AttentionArgs& a) { a.query.type = wrong; });
    refused("key", [&](AttentionArgs& a) { a.key.type = wrong; });
    refused("value", [&](AttentionArgs& a) { a.value.type = wrong; });
    refused("out", [&](AttentionArgs& a) { a.out.type = wrong; });
    if (type == DataType::kBF16) {
      AttentionArgs args = problem.args();
      args.mask.type = args.key_mask.type = DataType::kBF16;  // half of what is there
      EXPECT_NO_THROW(run(args));
      args.scores.type = DataType::kBF16;
      expect_error(ErrorCode::kInvalidArgument, {"scores is bf16", "f32"}, [&] { run(args); });
    } else {
      refused("mask", [&](AttentionArgs& a) { a.mask.type = wrong; });
      refused("key_mask", [&](AttentionArgs& a) { a.key_mask.type = wrong; });
    }
  }
}

TEST_F(ArgRefusals, Masks) {
  const auto mask = [&](DataType type, const Dims& dims) {
    return [this, type, dims](AttentionArgs& a) { a.mask = other(type, dims); };
  };
  expect_refused({"mask has 36 keys", "key_len = 32"}, mask(DataType::kBool, {36}));
  expect_refused({"mask", "i64", "bool"}, mask(DataType::kI64, {5, 32}));
  expect_refused({"mask", "i32", "bool"}, mask(DataType::kI32, {32}));
  expect_refused({"mask", "rank 5"}, mask(DataType::kBool, {1, 1, 1, 5, 32}));
  expect_refused({"mask", "rank 0"}, mask(DataType::kBool, {}));
  expect_refused({"mask", "6", "query_len = 5"}, mask(DataType::kBool, {6, 32}));
  // Rank 3 is (heads, Sq, Skv): two are neither 1 nor Hq.
  expect_refused({"mask", "2", "num_heads = 4"}, mask(DataType::kBool, {2, 5, 32}));
  expect_refused({"mask", "3", "batch = 2"}, mask(DataType::kBool, {3, 1, 5, 32}));
  expect_refused({"key_mask", "31", "32"}, [&](AttentionArgs& a) { a.key_mask = other(DataType::kF32, {2, 31}); });
  expect_refused({"key_mask", "3", "batch = 2"}, [&](AttentionArgs& a) {
    a.key_mask = other(DataType::kF32, {3, 32});
  });
  expect_refused({"key_mask", "bool", "f32"}, [&](AttentionArgs& a) { a.key_mask = other(DataType::kBool, {2, 32}); });
}

TEST_F(ArgRefusals, LengthsAndOffsets) {
  const std::int64_t too_long[] = {5, 33};
  const std::int64_t negative[] = {-1, 3};
  const std::int64_t far[] = {0, std::int64_t{1} << 62};
  expect_refused({"key_lengths[1]", "33", "32"}, [&](AttentionArgs& a) { a.key_lengths = view_of(too_long, {2}); });
  expect_refused({"key_lengths[0]", "-1"}, [&](AttentionArgs& a) { a.key_lengths = view_of(negative, {2}); });
  expect_refused({"key_lengths", "[3]", "2"}, [&](AttentionArgs& a) { a.key_lengths = other(DataType::kI64, {3}); });
  expect_refused({"key_lengths", "f32", "i64"}, [&](AttentionArgs& a) { a.key_lengths = other(DataType::kF32, {2}); });
  expect_refused({"offsets[1]"}, [&](AttentionArgs& a) { a.offsets = view_of(far, {2}); });
}

TEST_F(ArgRefusals, Aliasing) {
  expect_refused({"out overlaps query"}, [](AttentionArgs& a) { a.out.data = const_cast<std::byte*>(a.query.data); });
  expect_refused({"out overlaps value"},
                 [](AttentionArgs& a) { a.out.data = const_cast<std::byte*>(a.value.data) + 64; });
  expect_refused({"scores overlaps out"}, [](AttentionArgs& a) { a.scores.data = a.out.data; });
  expect_refused({"out overlaps itself", "stride 0"}, [](AttentionArgs& a) { a.out.strides[0] = 0; });
  expect_refused({"out overlaps itself"}, [](AttentionArgs& a) { a.out.strides[2] = 7; });
  const auto log_sum_exp = [](const std::byte* at, const Dims& strides) {
    return [at, strides](AttentionArgs& a) {
      a.log_sum_exp = TensorView(const_cast<std::byte*>(at), DataType::kF32, {2, 4, 5}, strides);
    };
  };
  const std::byte* const spare = other(DataType::kF32, {1}).data;
  expect_refused({"log_sum_exp overlaps out"}, log_sum_exp(problem_.out.view().data, {20, 5, 1}));
  expect_refused({"log_sum_exp overlaps scores"}, log_sum_exp(problem_.scores.view().data, {20, 5, 1}));
  expect_refused({"log_sum_exp overlaps key"}, log_sum_exp(problem_.key.view().data, {20, 5, 1}));
  expect_refused({"log_sum_exp overlaps itself"}, log_sum_exp(spare, {20, 0, 1}));
}

TEST_F(ArgRefusals, Workspace) {
  const Attention attention(problem_.spec());
  if (attention.workspace_bytes(1) == 0) GTEST_SKIP() << "this implementation needs none";
  expect_error(ErrorCode::kInvalidArgument, {"workspace", "null"},
               [&] { attention.run(problem_.args(), nullptr, Threads::serial()); });
  const AlignedBuffer workspace(attention.workspace_bytes(1) + 64);
  expect_error(ErrorCode::kInvalidArgument, {"workspace", "4 bytes", "64"},
               [&] { attention.run(problem_.args(), workspace.data() + 4, Threads::serial()); });
}

TEST(Selection, EveryImplementationCanBeForced) {
  for (const ImplementationEntry& entry : implementation_table()) {
    if (!entry.why_impossible(complete_spec(good_spec())).empty()) continue;
    const Attention attention(good_spec(), {entry.name});
    EXPECT_EQ(attention.implementation(), entry.name);
    EXPECT_NE(attention.explain().find(entry.name), std::string::npos) << attention.explain();
  }
}

TEST(Selection, UnknownNamesListTheKnownOnes) {
  expect_error(ErrorCode::kInvalidArgument, {"'fastest'", "reference"},
               [] { const Attention attention(good_spec(), {"fastest"}); });
}

TEST(Selection, TheEnvironmentForcesOneAndOptionsGoFirst) {
  setenv("HEADWAY_ATTENTION", "reference", 1);
  EXPECT_EQ(Attention(good_spec()).implementation(), "reference");
  setenv("HEADWAY_ATTENTION", "nonsense", 1);
  EXPECT_EQ(Attention(good_spec(), {"reference"}).implementation(), "reference");
  expect_error(ErrorCode::kInvalidArgument, {"HEADWAY_ATTENTION", "nonsense"},
               [] { const Attention attention(good_spec()); });
  unsetenv("HEADWAY_ATTENTION");
}

TEST(Selection, Bf16GoesToOnednnWhereItIsFaster) {
  AttentionSpec spec;
  spec.type = DataType::kBF16;
  spec.num_heads = 2;
  spec.query_len = 128;
  spec.key_len = 512;
  spec.head_dim = 64;
  const auto expect_run_by = [](const AttentionSpec& asked, const char* implementation, const char* text) {
    const Attention attention(asked);
    EXPECT_EQ(attention.implementation(), implementation) << attention.explain();
    EXPECT_NE(attention.explain().find(text), std::string::npos) << attention.explain();
  };
  const bool takes_it = onednn_tiles_why_impossible(spec).empty();
  const bool pairs = cpu_is_amd() && bf16_pairs_why_impossible(spec).empty();
  const auto expect_own = [&](const AttentionSpec& asked) {
    expect_run_by(asked, pairs ? "bf16_pairs" : "tiled", pairs ? "pairs" : "widened");
  };
  if (takes_it && onednn::bf16_has_tiles() && !pairs) {
    expect_run_by(spec, "onednn_tiles", "not tiled: oneDNN multiplies bf16 faster");
  } else {
    expect_own(spec);
  }
  if (!takes_it) {
    expect_error(ErrorCode::kUnsupported, {"onednn_tiles", "bf16"},
                 [&] { const Attention attention(spec, {"onednn_tiles"}); });
  }
  const auto changed = [&](const std::function<void(AttentionSpec&)>& change) {
    AttentionSpec other = spec;
    change(other);
    return other;
  };
  expect_own(changed([](AttentionSpec& s) { s.query_len = 63; }));
  expect_own(changed([](AttentionSpec& s) { s.key_len = 128; }));
  expect_own(changed([](AttentionSpec& s) { s.head_dim = 80; }));
  expect_own(changed([](AttentionSpec& s) { s.mask = MaskKind::kBool; }));
  expect_run_by(changed([](AttentionSpec& s) { s.query_len = 1; }), "few_queries", "1 rows");
  expect_run_by(changed([](AttentionSpec& s) { s.type = DataType::kF32; }), "tiled", "in place");
  expect_error(ErrorCode::kUnsupported, {"onednn_tiles", "80", "multiple of 32"}, [&] {
    const Attention attention(changed([](AttentionSpec& s) { s.head_dim = 80; }), {"onednn_tiles"});
  });
}

TEST(Selection, PairsOfBf16SayWhatTheyDoNotTake) {
  AttentionSpec spec = good_spec();
  expect_error(ErrorCode::kUnsupported, {"bf16_pairs", "not f32"},
               [&] { const Attention attention(spec, {"bf16_pairs"}); });
  spec.type = DataType::kBF16;
  if (bf16_tile_kernels().score == nullptr) {
    expect_error(ErrorCode::kUnsupported, {"bf16_pairs", "no products of bf16 pairs"},
                 [&] { const Attention attention(spec, {"bf16_pairs"}); });
    return;
  }
  AttentionSpec odd = spec;
  odd.head_dim = 7;
  expect_error(ErrorCode::kUnsupported, {"bf16_pairs", "head_dim = 7 is odd"},
               [&] { const Attention attention(odd, {"bf16_pairs"}); });
  AttentionSpec scores = spec;
  scores.scores_output = ScoresOutput::kProbabilities;
  expect_error(ErrorCode::kUnsupported, {"bf16_pairs", "gives no scores"},
               [&] { const Attention attention(scores, {"bf16_pairs"}); });
}

TEST(Selection, TheTableEndsWithTheReference) {
  EXPECT_EQ(attention_implementations().back(), "reference");
  EXPECT_TRUE(implementation_table().back().why_impossible(good_spec()).empty());
}

TEST(Semantics, ProfilesSetAlignmentPolarityAndEmptyRows) {
  AttentionSpec spec;
  apply_semantics("torch_sdpa", true, &spec);
  EXPECT_EQ(spec.causal, Causal::kTopLeft);
  EXPECT_EQ(spec.mask_polarity, MaskPolarity::kTrueAttends);
  apply_semantics("torch_mha", false, &spec);
  EXPECT_EQ(spec.causal, Causal::kNone);
  EXPECT_EQ(spec.mask_polarity, MaskPolarity::kTrueHides);
  apply_semantics("onnx", true, &spec);
  EXPECT_EQ(spec.causal, Causal::kOffset);
  EXPECT_EQ(spec.mask_polarity, MaskPolarity::kTrueAttends);
  apply_semantics("flash", true, &spec);
  EXPECT_EQ(spec.causal, Causal::kLastKey);
  EXPECT_EQ(spec.empty_row, EmptyRow::kZero);
  expect_error(ErrorCode::kInvalidArgument, {"'jax'", "torch_sdpa", "flash"},
               [&] { apply_semantics("jax", true, &spec); });
}

}  // namespace
}  // namespace headway::testing
