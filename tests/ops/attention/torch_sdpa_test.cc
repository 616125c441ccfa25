// Cases of torch.nn.functional.scaled_dot_product_attention, computed by torch in double: the reference must agree to
// the rounding of the file, every path to the bound.
#include <gtest/gtest.h>

#include <iostream>

#include "ops/attention/spec.h"
#include "ops/reference/reference_attention.h"
#include "tests/support/paths.h"
#include "tests/support/torch_cases.h"

namespace headway::testing {
namespace {

/// The expected values are stored as f32: half a unit in the last place.
constexpr double kStored = 6.1e-8;

/// Any rank as [B, H, S, D]: axes before the head are one batch, a missing batch is 1.
ConstTensorView rank4(const ConstTensorView& view) {
  Dims dims{1, 1, view.dims[view.rank() - 2], view.dims.back()};
  if (view.rank() >= 3) dims[1] = view.dims[view.rank() - 3];
  for (int axis = 0; axis + 3 < view.rank(); ++axis) dims[0] *= view.dims[axis];
  return view.reshaped(dims);
}

struct SdpaCase {
  AttentionSpec spec;
  AttentionArgs args;
};

SdpaCase make_case(const nlohmann::json& config, const TorchCase& tensors) {
  SdpaCase result;
  AttentionSpec& spec = result.spec;
  AttentionArgs& args = result.args;
  args.query = rank4(tensors.tensor("query"));
  args.key = rank4(tensors.tensor("key"));
  args.value = rank4(tensors.tensor("value"));
  spec.batch = args.query.dims[0];
  spec.num_heads = args.query.dims[1];
  spec.num_kv_heads = args.key.dims[1];
  spec.query_len = args.query.dims[2];
  spec.key_len = args.key.dims[2];
  spec.head_dim = args.query.dims[3];
  spec.value_head_dim = args.value.dims[3];
  apply_semantics("torch_sdpa", config["is_causal"].get<bool>(), &spec);
  if (!config["scale"].is_null()) spec.scale = config["scale"].get<float>();
  args.mask = tensors.tensor("attn_mask");
  if (args.mask) {
    spec.mask = args.mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
    if (!config["attn_mask_expanded_to"].is_null()) {  // as torch's expand: stride 0
      const auto dims = config["attn_mask_expanded_to"].get<std::vector<std::int64_t>>();
      args.mask = args.mask.broadcast_to(Dims(dims));
    }
  }
  return result;
}

/// The same numbers rounded to bf16.
Strided rounded(const ConstTensorView& view) {
  Strided result(view.dims, Layout::kBshd, DataType::kBF16);
  each(view.dims, [&](auto b, auto h, auto i, auto d) {
    result.at(b, h, i, d) = view.as<float>()[offset_of(view.strides, b, h, i, d)];
  });
  return result;
}

/// Every path of one type against the double reference on the same inputs.
void run_paths(const SdpaCase& problem, int id) {
  SdpaCase given = problem;
  Strided out({problem.spec.batch, problem.spec.num_heads, problem.spec.query_len, *problem.spec.value_head_dim},
              Layout::kBhsd, problem.spec.type);
  given.args.out = out.view();
  const Expected bounds(given.spec, given.args);
  for (const Path& path : all_paths()) {
    if (path.type != given.spec.type || !refusal(path, given.spec).empty()) continue;
    out.poison();
    run_path(path, given.spec, given.args, Threads::serial());
    const Comparison comparison = bounds.compare(given.args, rounds_weights(path));
    note_ratio(path, comparison.worst);
    EXPECT_TRUE(comparison.ok()) << "case " << id << " " << path << ": " << comparison.failure;
  }
}

int run_folder(const std::filesystem::path& folder) {
  const nlohmann::json manifest = read_json(folder / "configs.json");
  const SafetensorsFile file = SafetensorsFile::open(folder / manifest["file"].get<std::string>());
  int cases = 0;
  double worst = 0;
  for (const nlohmann::json& config : manifest["configs"]) {
    const int id = config["id"].get<int>();
    const TorchCase tensors(file, id);
    // A mask of five axes cannot be told to heads and batch by its rank.
    if (tensors.tensor("attn_mask").rank() > 4) continue;
    SdpaCase problem = make_case(config, tensors);
    const AttentionSpec as_given = problem.spec;  // its default scale is not rounded to f32
    problem.spec = complete_spec(as_given);
    const ConstTensorView expected = tensors.tensor("output");
    const Dims out_dims{problem.spec.batch, problem.spec.num_heads, problem.spec.query_len,
                        *problem.spec.value_head_dim};

    std::vector<double> exact(static_cast<std::size_t>(element_count(out_dims)) + 1);
    AttentionArgs exact_args = problem.args;
    exact_args.out = view_of(exact.data(), out_dims);
    reference_attention(as_given, exact_args);
    const double difference = worst_difference(exact_args.out, expected);
    worst = std::max(worst, difference);
    EXPECT_LE(difference, kStored) << "case " << id;

    run_paths(problem, id);
    Strided query = rounded(problem.args.query);
    Strided key = rounded(problem.args.key);
    Strided value = rounded(problem.args.value);
    problem.spec.type = DataType::kBF16;
    problem.args.query = query.view();
    problem.args.key = key.view();
    problem.args.value = value.view();
    run_paths(problem, id);
    ++cases;
  }
  std::cout << cases << " cases; reference to torch: " << worst << " at worst\n";
  return cases;
}

TEST(TorchSdpa, EveryCaseAgrees) {
  const auto folders = case_folders("sdpa_torch");
  if (folders.empty()) GTEST_SKIP() << "no folder sdpa_torch in tests/fixtures or beside the checkout";
  for (const auto& folder : folders) EXPECT_GT(run_folder(folder), 10) << folder;
}

}  // namespace
}  // namespace headway::testing
