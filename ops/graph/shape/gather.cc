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
  check_inputs(op, node, 2, 2);
  check_type(op, node, 1, {DataType::kI64, DataType::kI32});
  return normalised_axis(op, node.attributes.integer("axis", 0), node.inputs[0].dims.rank());
}

Infos infer_gather(const char* op, const NodeContext& node) {
  const int axis = gather_axis(op, node);
  const Dims& data = node.inputs[0].dims;
  Dims dims;
  for (int a = 0; a < axis; ++a) dims.push_back(data[a]);
  for (const std::int64_t d : node.inputs[1].dims) dims.push_back(d);
  for (int a = axis + 1; a < data.rank(); ++a) dims.push_back(data[a]);
  return {{node.inputs[0].type, dims}};
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

struct NdShape {
  int batch_dims;
  int width;  // axes that one index tuple names
};

NdShape nd_shape(const char* op, const NodeContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 1, {DataType::kI64, DataType::kI32});
  const Dims& data = node.inputs[0].dims;
  const Dims& indices = node.inputs[1].dims;
  const std::int64_t batch = node.attributes.integer("batch_dims", 0);
  require(data.rank() >= 1 && indices.rank() >= 1, op, " inputs have ranks ", data.rank(), " and ", indices.rank(),
          ", expected 1 or more");
  require(batch >= 0 && batch < std::min(data.rank(), indices.rank()), op, " batch_dims is ", batch, ", expected 0 to ",
          std::min(data.rank(), indices.rank()) - 1);
  for (int a = 0; a < batch; ++a) {
    require(data[a] == indices[a], op, " batch axis ", a, " is ", data[a], " and ", indices[a],
            ", expected equal sizes");
  }
  require(indices.back() >= 1 && indices.back() <= data.rank() - batch, op, " index tuples have ", indices.back(),
          " numbers, expected 1 to ", data.rank() - batch);
  return {static_cast<int>(batch), static_cast<int>(indices.back())};
}

Infos infer_nd(const char* op, const NodeContext& node) {
  const NdShape shape = nd_shape(op, node);
  const Dims& data = node.inputs[0].dims;
  Dims dims;
  for (int a = 0; a < node.inputs[1].dims.rank() - 1; ++a) dims.push_back(node.inputs[1].dims[a]);
  for (int a = shape.batch_dims + shape.width; a < data.rank(); ++a) dims.push_back(data[a]);
  return {{node.inputs[0].type, dims}};
}

std::unique_ptr<NodePlan> plan_nd(const char* op, const NodeContext& node, const Infos&) {
  return make_plan([op, shape = nd_shape(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    if (outputs[0].count() == 0) return;
    const Dims& data = inputs[0].dims;
    const int first = shape.batch_dims;
    const int last = first + shape.width;
    const std::int64_t tuples = inputs[1].count() / shape.width;
    const std::int64_t tuples_a_batch = tuples / product(data, 0, first);
    const std::int64_t bytes = product(data, last, data.rank()) * static_cast<std::int64_t>(size_bytes(inputs[0].type));
    copy_rows(context, tuples, static_cast<std::size_t>(bytes), outputs[0], [&](std::int64_t i) {
      std::int64_t row = i / tuples_a_batch;
      for (int a = first; a < last; ++a) {
        row = row * data[a] + checked(op, index_at(inputs[1], i * shape.width + a - first), data[a]);
      }
      return inputs[0].data + row * bytes;
    });
  });
}

Infos infer_elements(const char* op, const NodeContext& node) {
  const int axis = gather_axis(op, node);
  const Dims& data = node.inputs[0].dims;
  const Dims& indices = node.inputs[1].dims;
  require(indices.rank() == data.rank(), op, " indices have rank ", indices.rank(), ", expected ", data.rank());
  for (int a = 0; a < data.rank(); ++a) {
    require(a == axis || indices[a] <= data[a], op, " indices have ", indices[a], " elements in axis ", a,
            ", expected at most ", data[a]);
  }
  return {{node.inputs[0].type, indices}};
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
