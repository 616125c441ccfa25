// Gather along an axis, GatherND, GatherElements: copies of elements or rows by index. An index is checked when it is
// used, since it is data. Knows no element type.
#include <cstring>

#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

std::int64_t index_at(const ConstTensorView& indices, std::int64_t i) {
  return indices.type == DataType::kI64 ? reinterpret_cast<const std::int64_t*>(indices.data)[i]
                                        : reinterpret_cast<const std::int32_t*>(indices.data)[i];
}

/// Negative indices count from the end.
std::int64_t checked(const char* op, std::int64_t index, std::int64_t length) {
  require(index >= -length && index < length, op, " index is ", index, ", expected ", -length, " to ", length - 1);
  return index < 0 ? index + length : index;
}

std::int64_t product(const Dims& dims, int begin, int end) {
  std::int64_t n = 1;
  for (int a = begin; a < end; ++a) n *= dims[a];
  return n;
}

/// Copies per task of about a cache page's worth of work.
std::int64_t block_of(std::size_t row_bytes) {
  return std::max<std::int64_t>(1, 65536 / static_cast<std::int64_t>(row_bytes + 64));
}

/// Copies `count` rows; row(i) says where row i comes from.
template <class Row>
void copy_rows(const RunContext& context, std::int64_t count, std::size_t bytes, const TensorView& out, Row row) {
  const std::int64_t block = block_of(bytes);
  context.threads.parallel_for((count + block - 1) / block, [&](std::int64_t task, int) {
    const std::int64_t end = std::min(count, (task + 1) * block);
    for (std::int64_t i = task * block; i < end; ++i) {
      std::memcpy(out.data + i * static_cast<std::int64_t>(bytes), row(i), bytes);
    }
  });
}

/// A plan that takes its first input, perhaps a large table in a file, as bytes.
template <class Run>
class RowsPlan final : public NodePlan {
 public:
  explicit RowsPlan(Run run) : run_(std::move(run)) {}
  InputUse use(std::size_t input) const override { return input == 0 ? InputUse::kBytes : InputUse::kElements; }
  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override { run_(context, inputs, outputs); }

 private:
  Run run_;
};

template <class Run>
std::unique_ptr<NodePlan> make_rows_plan(Run run) {
  return std::make_unique<RowsPlan<Run>>(std::move(run));
}

int gather_axis(const char* op, const NodeContext& node) {
  return normalised_axis(op, node.attributes.integer("axis", 0), static_cast<std::size_t>(node.inputs[0].dims.rank()));
}

/// Chosen elements of a list.
std::optional<DimList> gathered_elements(const InferContext& node) {
  const ValueInfo& from = node.inputs[0];
  const ValueInfo& indices = node.inputs[1];
  if (!from.elements || !indices.elements || from.rank() != 1 || indices.rank() > 1) return std::nullopt;
  const auto length = static_cast<std::int64_t>(from.elements->size());
  DimList elements;
  for (const Dim& index : *indices.elements) {
    if (!index.is_number() || index.factor < -length || index.factor >= length) return std::nullopt;
    const std::int64_t at = index.factor < 0 ? index.factor + length : index.factor;
    elements.push_back((*from.elements)[static_cast<std::size_t>(at)]);
  }
  return elements;
}

/// Refuses what a list does not have as a run does, which a fused graph may do without.
void check_known_indices(const char* op, const InferContext& node) {
  const DimList& data = *node.inputs[0].dims;
  const ValueInfo& indices = node.inputs[1];
  const bool known = indices.elements || (node.constants.size() > 1 && node.constants[1]);
  if (data.size() != 1 || !data[0].is_number() || !known || indices.rank() > 1) return;
  const DimList numbers = elements_of(op, node, 1, "indices").value_or(DimList());
  for (const Dim& index : numbers) {
    if (index.is_number()) checked(op, index.factor, data[0].factor);
  }
}

Inferred infer_gather(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 1, {DataType::kI64, DataType::kI32});
  const auto& data = node.inputs[0].dims;
  const auto& indices = node.inputs[1].dims;
  const std::int64_t given = node.attributes.integer("axis", 0);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = gathered_elements(node)};
  if (!data) return {out};
  const int axis = normalised_axis(op, given, data->size());
  check_known_indices(op, node);
  if (!indices) return {out};
  DimList dims(data->begin(), data->begin() + axis);
  dims.insert(dims.end(), indices->begin(), indices->end());
  dims.insert(dims.end(), data->begin() + axis + 1, data->end());
  out.dims = std::move(dims);
  return {out};
}

std::unique_ptr<NodePlan> plan_gather(const char* op, const NodeContext& node, const Infos&) {
  return make_rows_plan([op, axis = gather_axis(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    if (outputs[0].count() == 0) return;
    const Dims& dims = inputs[0].dims;
    const std::int64_t indices = inputs[1].count();
    const std::int64_t bytes =
        product(dims, axis + 1, dims.rank()) * static_cast<std::int64_t>(size_bytes(inputs[0].type));
    copy_rows(context, product(dims, 0, axis) * indices, static_cast<std::size_t>(bytes), outputs[0],
              [&](std::int64_t i) {
                const std::int64_t index = checked(op, index_at(inputs[1], i % indices), dims[axis]);
                return inputs[0].data + (i / indices * dims[axis] + index) * bytes;
              });
  });
}

Inferred infer_nd(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 1, {DataType::kI64, DataType::kI32});
  const std::int64_t batch = node.attributes.integer("batch_dims", 0);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  if (!node.inputs[0].dims || !node.inputs[1].dims) return {out};
  const DimList& data = *node.inputs[0].dims;
  const DimList& indices = *node.inputs[1].dims;
  require(!data.empty() && !indices.empty(), op, " inputs have ranks ", data.size(), " and ", indices.size(),
          ", expected 1 or more");
  const auto most = static_cast<std::int64_t>(std::min(data.size(), indices.size())) - 1;
  require(batch >= 0 && batch <= most, op, " batch_dims is ", batch, ", expected 0 to ", most);
  for (std::size_t a = 0; a < static_cast<std::size_t>(batch); ++a) {
    require(may_equal(data[a], indices[a]), op, " batch axis ", a, " is ", data[a], " and ", indices[a],
            ", expected equal sizes");
  }
  const Dim& width = indices.back();
  if (!width.is_number()) return {out};
  const auto rank = static_cast<std::int64_t>(data.size());
  require(width.factor >= 1 && width.factor <= rank - batch, op, " index tuples have ", width,
          " numbers, expected 1 to ", rank - batch);
  DimList dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + batch + width.factor, data.end());
  out.dims = std::move(dims);
  return {out};
}

std::unique_ptr<NodePlan> plan_nd(const char* op, const NodeContext& node, const Infos&) {
  const auto first = static_cast<int>(node.attributes.integer("batch_dims", 0));
  const std::int64_t width = node.inputs[1].dims.back();  // axes that one index tuple names
  return make_plan([op, first, width](const RunContext& context, Inputs inputs, Outputs outputs) {
    if (outputs[0].count() == 0) return;
    const Dims& data = inputs[0].dims;
    const int last = first + static_cast<int>(width);
    const std::int64_t tuples = inputs[1].count() / width;
    const std::int64_t tuples_a_batch = tuples / product(data, 0, first);
    const std::int64_t bytes = product(data, last, data.rank()) * static_cast<std::int64_t>(size_bytes(inputs[0].type));
    copy_rows(context, tuples, static_cast<std::size_t>(bytes), outputs[0], [&](std::int64_t i) {
      std::int64_t row = i / tuples_a_batch;
      for (int a = first; a < last; ++a) {
        row = row * data[a] + checked(op, index_at(inputs[1], i * width + a - first), data[a]);
      }
      return inputs[0].data + row * bytes;
    });
  });
}

Inferred infer_elements(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 1, {DataType::kI64, DataType::kI32});
  const std::int64_t given = node.attributes.integer("axis", 0);
  const ValueInfo out{.type = node.inputs[0].type, .dims = node.inputs[1].dims, .elements = {}};
  if (!node.inputs[0].dims) return {out};
  const DimList& data = *node.inputs[0].dims;
  const int axis = normalised_axis(op, given, data.size());
  if (!out.dims) return {out};
  const DimList& indices = *out.dims;
  require(indices.size() == data.size(), op, " indices have rank ", indices.size(), ", expected ", data.size());
  for (std::size_t a = 0; a < data.size(); ++a) {
    const bool known = data[a].is_number() && indices[a].is_number();
    require(static_cast<int>(a) == axis || !known || indices[a].factor <= data[a].factor, op, " indices have ",
            indices[a], " elements in axis ", a, ", expected at most ", data[a]);
  }
  return {out};
}

std::unique_ptr<NodePlan> plan_elements(const char* op, const NodeContext& node, const Infos&) {
  return make_plan([op, axis = gather_axis(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    const ConstTensorView& data = inputs[0];
    const auto bytes = static_cast<std::int64_t>(size_bytes(data.type));
    copy_rows(context, outputs[0].count(), size_bytes(data.type), outputs[0], [&](std::int64_t i) {
      std::int64_t offset = checked(op, index_at(inputs[1], i), data.dims[axis]) * data.strides[axis];
      std::int64_t rest = i;
      for (int a = data.rank() - 1; a >= 0; --a) {
        if (a != axis) offset += rest % outputs[0].dims[a] * data.strides[a];
        rest /= outputs[0].dims[a];
      }
      return data.data + offset * bytes;
    });
  });
}

}  // namespace

void add_gather_ops(Registry* registry) {
  registry->add(
      make_op("Gather", {.infer = infer_gather, .plan = plan_gather, .first_input_planning = InputUse::kNothing}));
  registry->add(make_op("GatherND", {.infer = infer_nd, .plan = plan_nd}));
  registry->add(make_op("GatherElements", {.infer = infer_elements, .plan = plan_elements}));
}

}  // namespace headway
