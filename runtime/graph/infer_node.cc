// One node's rule asked, and its answer checked: how many outputs, and that a tensor may have such dims.
#include <string>

#include "headway/graph.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"

namespace headway {
namespace {

void check_output(const ValueInfo& info, bool is_final) {
  if (!info.present) return;
  if (is_final) {
    const TensorInfo numbers = tensor_info(info);
    tensor_bytes(numbers.type, numbers.dims);
    return;
  }
  if (!info.dims) return;
  const DimList& dims = *info.dims;
  if (all_numbers(dims)) {
    tensor_bytes(info.type.value_or(DataType::kBool), number_dims(dims));
    return;
  }
  require(dims.size() <= kMaxRank, "rank is ", dims.size(), ", at most ", kMaxRank, " is supported");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    require(!dims[i].is_number() || dims[i].factor >= 0, "axis ", i, " of ", dims, " is ", dims[i],
            ", expected 0 or more");
  }
}

}  // namespace

ValueInfo value_info(const TensorInfo& info) { return {info.type, dim_list(info.dims), {}, info.present}; }

TensorInfo tensor_info(const ValueInfo& info) {
  if (!info.present) return {DataType::kF32, {}, false};
  if (!info.type || !info.dims || !all_numbers(*info.dims)) {
    fail(ErrorCode::kUnsupported, "the dims of an output are computed from data at run time");
  }
  return {*info.type, number_dims(*info.dims), true};
}

Dim InferContext::unknown_size(std::int64_t i) const {
  if (is_final()) fail(ErrorCode::kUnsupported, "a dim is computed from data at run time");
  return unknowns->named(std::to_string(node) + "d" + std::to_string(i), true);
}

DimList InferContext::unknown_sizes(std::size_t rank) const {
  DimList dims;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(unknown_size(static_cast<std::int64_t>(i)));
  return dims;
}

Error node_error(const Node& node, const Error& error) {
  return Error(error.code(), "node " + quoted(node.name) + " (" + printable(node.op) + "): " + error.what());
}

std::vector<ValueInfo> infer_node(const Node& node, const Operator& op, const InferContext& context) {
  try {
    std::vector<ValueInfo> outputs = op.infer(context);
    if (outputs.size() != node.outputs.size()) {
      // A file may ask an operator for more than it gives; an operator that gives nothing is at fault itself.
      require(outputs.empty(), "has ", node.outputs.size(), " outputs, expected ", outputs.size());
      fail(ErrorCode::kInternal, "operator inferred ", outputs.size(), " outputs, expected ", node.outputs.size());
    }
    for (const ValueInfo& output : outputs) check_output(output, context.is_final());
    return outputs;
  } catch (const Error& error) {
    throw node_error(node, error);
  }
}

}  // namespace headway
