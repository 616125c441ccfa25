// Add and Mul with broadcasting. Decides the split into rows; knows nothing of what surrounds it.
#include <algorithm>

#include "ops/operators.h"

namespace headway {
namespace {

constexpr std::int64_t kTaskElements = 16384;  // a task: long enough to be worth handing to another thread

enum class Binary { kAdd, kMul };

Dims broadcast_dims(const char* op, const Dims& a, const Dims& b) {
  Dims out = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  for (int i = 0; i < shorter.rank(); ++i) {
    const int at = out.rank() - shorter.rank() + i;
    const std::int64_t x = out[at];
    const std::int64_t y = shorter[i];
    require(x == y || x == 1 || y == 1, op, " inputs have dims ", a, " and ", b, ", expected ", x, " and ", y,
            " to be equal or one of them 1");
    out[at] = x == 1 ? y : x;
  }
  return out;
}

/// One innermost row; the strides 1 and 0 are the ones the compiler can vectorise.
template <class Op>
void row(const float* a, std::int64_t as, const float* b, std::int64_t bs, float* out, std::int64_t os, std::int64_t n,
         Op op) {
  if (as == 1 && bs == 1 && os == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = op(a[i], b[i]);
  } else if (as == 1 && bs == 0 && os == 1) {
    const float y = b[0];
    for (std::int64_t i = 0; i < n; ++i) out[i] = op(a[i], y);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i * os] = op(a[i * as], b[i * bs]);
  }
}

class BinaryPlan : public NodePlan {
 public:
  explicit BinaryPlan(Binary kind) : kind_(kind) {}

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const TensorView& out = outputs[0];
    const ConstTensorView a = inputs[0].broadcast_to(out.dims);
    const ConstTensorView b = inputs[1].broadcast_to(out.dims);
    const int rank = out.rank();
    if (out.count() == 0) return;
    const std::int64_t n = rank == 0 ? 1 : out.dims.back();
    const std::int64_t rows = out.count() / n;
    const std::int64_t rows_a_task = std::max<std::int64_t>(1, kTaskElements / n);
    context.threads.parallel_for((rows + rows_a_task - 1) / rows_a_task, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(rows, (task + 1) * rows_a_task);
      for (std::int64_t r = task * rows_a_task; r < end; ++r) run_row(a, b, out, r, n);
    });
  }

 private:
  void run_row(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, std::int64_t r,
               std::int64_t n) const {
    std::int64_t at_a = 0, at_b = 0, at_out = 0;
    const int rank = out.rank();
    for (int axis = rank - 2; axis >= 0; --axis) {
      const std::int64_t i = r % out.dims[axis];
      r /= out.dims[axis];
      at_a += i * a.strides[axis];
      at_b += i * b.strides[axis];
      at_out += i * out.strides[axis];
    }
    const std::int64_t as = rank == 0 ? 0 : a.strides.back();
    const std::int64_t bs = rank == 0 ? 0 : b.strides.back();
    const std::int64_t os = rank == 0 ? 0 : out.strides.back();
    const float* pa = a.as<float>() + at_a;
    const float* pb = b.as<float>() + at_b;
    float* po = out.as<float>() + at_out;
    if (kind_ == Binary::kAdd) {
      row(pa, as, pb, bs, po, os, n, [](float x, float y) { return x + y; });
    } else {
      row(pa, as, pb, bs, po, os, n, [](float x, float y) { return x * y; });
    }
  }

  Binary kind_;
};

class BinaryOp : public Operator {
 public:
  BinaryOp(const char* op_name, Binary kind) : name_(op_name), kind_(kind) {}
  std::string_view name() const override { return name_; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    check_inputs(name_, node, 2, 2);
    check_f32(name_, node, 0);
    check_f32(name_, node, 1);
    return {{DataType::kF32, broadcast_dims(name_, node.inputs[0].dims, node.inputs[1].dims)}};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override {
    return std::make_unique<BinaryPlan>(kind_);
  }

 private:
  const char* name_;
  Binary kind_;
};

}  // namespace

std::unique_ptr<Operator> make_add_op() { return std::make_unique<BinaryOp>("Add", Binary::kAdd); }
std::unique_ptr<Operator> make_mul_op() { return std::make_unique<BinaryOp>("Mul", Binary::kMul); }

}  // namespace headway
