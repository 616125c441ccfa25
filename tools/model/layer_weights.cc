// Finding and checking a layer's weights. See layer_weights.h.
#include "tools/model/layer_weights.h"

#include <algorithm>
#include <set>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"

namespace headway::tools {
namespace {

constexpr const char* kNames[] = {
    "in_proj_weight", "in_proj_bias",    "q_proj_weight", "k_proj_weight", "v_proj_weight", "bias_k",
    "bias_v",         "q_proj.weight",   "q_proj.bias",   "k_proj.weight", "k_proj.bias",   "v_proj.weight",
    "v_proj.bias",    "out_proj.weight", "out_proj.bias", "o_proj.weight", "o_proj.bias",
};
constexpr const char* kFirstNames[] = {"in_proj_weight", "q_proj_weight", "q_proj.weight"};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Counters and masks that a file keeps beside weights are no floats, or of types that only other programs have.
bool is_float(const SafetensorsFile& file, const std::string& name) {
  if (!file.can_show(name)) return false;
  const DataType type = file.tensor(name).type;
  return type == DataType::kF32 || type == DataType::kF64 || type == DataType::kF16 || type == DataType::kBF16;
}

// Reads tensors of one layer by their bare names.
class Reader {
 public:
  Reader(const SafetensorsFile& file, const std::string& prefix, F32Pool* pool)
      : file_(file), prefix_(prefix), pool_(pool) {
    for (const char* first : kFirstNames) {
      if (leader_.empty() && has(first)) leader_ = prefix_ + first;
    }
    if (!leader_.empty()) type_ = compute_type(file_.tensor(leader_).type);
  }

  /// Of the layer's first weight, and so of all.
  DataType type() const { return type_; }

  bool has(const std::string& name) const { return file_.has(prefix_ + name); }
  ConstTensorView required(const std::string& name, int rank) const {
    require(has(name), file_.path(), " has no ", prefix_, name);
    const ConstTensorView view = file_.tensor(prefix_ + name);
    require(view.rank() == rank, prefix_, name, " has rank ", view.rank(), ", expected ", rank);
    return pool_->of(type_, view, prefix_ + name, leader_ + " is");
  }
  ConstTensorView optional(const std::string& name, int rank) const {
    return has(name) ? required(name, rank) : ConstTensorView();
  }
  void expect_dims(const ConstTensorView& view, const std::string& name, const Dims& dims) const {
    require(!view || view.dims == dims, prefix_, name, " has shape ", view.dims, ", expected ", dims);
  }

 private:
  const SafetensorsFile& file_;
  const std::string& prefix_;
  F32Pool* pool_;
  std::string leader_;
  DataType type_ = DataType::kF32;
};

void read_projections(const Reader& read, MultiHeadAttentionWeights* views) {
  if (read.has("in_proj_weight")) {
    require(!read.has("q_proj_weight") && !read.has("q_proj.weight"),
            "weights have in_proj_weight and q_proj, expected one");
    const ConstTensorView packed_weight = read.required("in_proj_weight", 2);
    const std::int64_t width = packed_weight.dims[1];
    read.expect_dims(packed_weight, "in_proj_weight", {3 * width, width});
    const ConstTensorView bias = read.optional("in_proj_bias", 1);
    read.expect_dims(bias, "in_proj_bias", {3 * width});
    split_in_proj(packed_weight, bias, views);
    return;
  }
  const std::string tail = read.has("q_proj_weight") ? "_proj_weight" : "_proj.weight";
  views->query = read.required("q" + tail, 2);
  views->key = read.required("k" + tail, 2);
  views->value = read.required("v" + tail, 2);
  const std::int64_t q = views->query.dims[0], k = views->key.dims[0], v = views->value.dims[0];
  if (const ConstTensorView bias = read.optional("in_proj_bias", 1)) {
    read.expect_dims(bias, "in_proj_bias", {q + k + v});
    views->query_bias = bias.sliced(0, 0, q);
    views->key_bias = bias.sliced(0, q, q + k);
    views->value_bias = bias.sliced(0, q + k, q + k + v);
    return;
  }
  views->query_bias = read.optional("q_proj.bias", 1);
  views->key_bias = read.optional("k_proj.bias", 1);
  views->value_bias = read.optional("v_proj.bias", 1);
  read.expect_dims(views->query_bias, "q_proj.bias", {q});
  read.expect_dims(views->key_bias, "k_proj.bias", {k});
  read.expect_dims(views->value_bias, "v_proj.bias", {v});
}

}  // namespace

std::string find_layer_prefix(const SafetensorsFile& file) {
  std::set<std::string> prefixes;
  for (const std::string& name : file.names()) {
    for (const std::string first : kFirstNames) {
      if (!ends_with(name, first)) continue;
      const std::string prefix = name.substr(0, name.size() - first.size());
      if (prefix.empty() || prefix.back() == '.') prefixes.insert(prefix);
    }
  }
  require(!prefixes.empty(), file.path(), " has no in_proj_weight, q_proj_weight or q_proj.weight among ",
          file.names().size(), " tensors");
  require(prefixes.size() == 1, file.path(), " holds ", prefixes.size(), " attention layers (", *prefixes.begin(), ", ",
          *prefixes.rbegin(), "), expected 1: choose with --prefix");
  return *prefixes.begin();
}

void refuse_unknown_weights(const SafetensorsFile& file, const std::string& prefix) {
  for (const std::string& name : file.names()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string bare = name.substr(prefix.size());
    const bool known = std::any_of(std::begin(kNames), std::end(kNames), [&](const char* k) { return bare == k; });
    if (known || !is_float(file, name)) continue;
    fail(ErrorCode::kInvalidArgument, printable(file.path()), " has ", printable(name),
         ", which is not a weight of multi-head attention");
  }
}

LayerWeights read_layer_weights(const SafetensorsFile& file, const std::string& prefix) {
  LayerWeights out;
  const Reader read(file, prefix, &out.pool);
  out.type = read.type();
  read_projections(read, &out.views);
  out.embed_dim = out.views.query.dims[1];
  out.kdim = out.views.key.dims[1];
  out.vdim = out.views.value.dims[1];

  const std::string output = read.has("o_proj.weight") ? "o_proj" : "out_proj";
  out.views.output = read.required(output + ".weight", 2);
  require(out.views.output.dims[0] == out.embed_dim, prefix, output, ".weight has ", out.views.output.dims[0],
          " rows, expected embed_dim = ", out.embed_dim);
  out.views.output_bias = read.optional(output + ".bias", 1);
  read.expect_dims(out.views.output_bias, output + ".bias", {out.embed_dim});

  require(read.has("bias_k") == read.has("bias_v"), file.path(), " has ", read.has("bias_k") ? "bias_k" : "bias_v",
          " without ", read.has("bias_k") ? "bias_v" : "bias_k");
  if (read.has("bias_k")) {
    const std::int64_t key_rows = out.views.key.dims[0], value_rows = out.views.value.dims[0];
    const ConstTensorView bias_k = read.required("bias_k", 3), bias_v = read.required("bias_v", 3);
    read.expect_dims(bias_k, "bias_k", {1, 1, key_rows});
    read.expect_dims(bias_v, "bias_v", {1, 1, value_rows});
    out.views.bias_k = bias_k.reshaped({key_rows});
    out.views.bias_v = bias_v.reshaped({value_rows});
  }
  return out;
}

void check_heads(const LayerWeights& weights, std::int64_t num_heads, std::int64_t num_kv_heads) {
  require(num_heads >= 1, "heads is ", num_heads, ", expected at least 1");
  require(num_kv_heads >= 1, "kv-heads is ", num_kv_heads, ", expected at least 1");
  require(num_heads % num_kv_heads == 0, "heads is ", num_heads, ", expected a multiple of kv-heads = ", num_kv_heads);
  const std::int64_t query_rows = weights.views.query.dims[0];
  require(query_rows % num_heads == 0, "query weight has ", query_rows,
          " rows, expected a multiple of heads = ", num_heads);
  const std::int64_t head_dim = query_rows / num_heads;
  const std::int64_t key_rows = weights.views.key.dims[0];
  require(key_rows == num_kv_heads * head_dim, "key weight has ", key_rows,
          " rows, expected kv-heads · head_dim = ", num_kv_heads * head_dim);
  const std::int64_t value_rows = weights.views.value.dims[0];
  require(value_rows % num_kv_heads == 0, "value weight has ", value_rows,
          " rows, expected a multiple of kv-heads = ", num_kv_heads);
  const std::int64_t context = num_heads * (value_rows / num_kv_heads);
  require(weights.views.output.dims[1] == context, "output weight has ", weights.views.output.dims[1],
          " columns, expected heads · value_head_dim = ", context);
}

}  // namespace headway::tools
