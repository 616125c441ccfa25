// One operator at a time, with inputs, attributes and dims as ONNX defines them.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "tests/fuzz/make_model.h"

namespace headway::fuzz {
namespace {

/// An axis, counted from either end.
std::int64_t either_end(Dice* dice, std::int64_t axis, std::size_t rank) {
  return dice->one_in(2) ? axis : axis - static_cast<std::int64_t>(rank);
}

/// Dims that broadcast to `dims`: some axes 1, leading ones left out.
Sizes narrower(Dice* dice, const Sizes& dims) {
  Sizes some(dims.begin() + static_cast<std::ptrdiff_t>(dice->below(dims.size() + 1)), dims.end());
  for (std::int64_t& dim : some) {
    if (dice->one_in(3)) dim = 1;
  }
  return some;
}

/// Axes as an attribute or an input, whichever the opset has from `as_input` on.
void add_axes(ModelBuilder* model, std::vector<std::string>* inputs, std::int64_t as_input,
              const std::vector<std::int64_t>& axes) {
  if (model->opset() >= as_input) inputs->push_back(model->list(axes).name);
}

/// Whether numbers that are nearly the same may give results that are not.
bool jumps(const std::string& op) {
  constexpr const char* kOps[] = {"Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Sign", "Round", "Pow", "Div"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

void unary(ModelBuilder* model) {
  constexpr const char* kOps[] = {"Relu", "Tanh", "Sigmoid", "Erf",      "Exp",        "Log",
                                  "Sqrt", "Abs",  "Neg",     "Sin",      "Cos",        "Floor",
                                  "Ceil", "Sign", "Round",   "Softplus", "Reciprocal", "Identity"};
  const std::string op = model->dice().pick(kOps);
  const Value x = without(model, jumps(op) ? kCancelled : 0U, pick_floats(model, 0, 4));
  model->node(op, {x}, kF32, x.dims);
}

void binary(ModelBuilder* model) {
  constexpr const char* kOps[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow"};
  const std::string op = model->dice().pick(kOps);
  const Value x = without(model, jumps(op) ? kCancelled : 0U, pick_floats(model, 0, 4));
  const Value y = model->dice().one_in(4) ? x : model->random_floats(narrower(&model->dice(), x.dims));
  const bool swapped = model->dice().one_in(2);
  model->node(op, swapped ? std::vector<Value>{y, x} : std::vector<Value>{x, y}, kF32, x.dims);
}

void select(ModelBuilder* model) {
  constexpr const char* kOps[] = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"};
  const Value x = without(model, kCancelled, pick_floats(model, 0, 4));
  const Value chosen =
      model->node(model->dice().pick(kOps), {x, model->random_floats(narrower(&model->dice(), x.dims))}, kBool, x.dims);
  const Value other = model->random_floats(narrower(&model->dice(), x.dims));
  if (model->dice().one_in(4)) {
    model->node("Cast", {chosen}, kF32, x.dims);
    model->attribute("to", std::int64_t{kF32});
    return;
  }
  model->node("Where", {chosen, x, other}, kF32, x.dims);
}

void through_cast(ModelBuilder* model) {
  constexpr int kTypes[] = {kF16, kBF16, kF64, kI32, kI64};
  const int type = model->dice().pick(kTypes);
  const bool whole = type == kI32 || type == kI64;
  const Value x = without(model, whole ? kCancelled : 0U, pick_floats(model, 0, 4));
  const Value there = model->node("Cast", {x}, type, x.dims);
  model->attribute("to", std::int64_t{type});
  model->node("Cast", {there}, kF32, x.dims);
  model->attribute("to", std::int64_t{kF32});
}

void softmax(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const auto axis =
      static_cast<std::int64_t>(model->dice().one_in(3) ? model->dice().below(x.dims.size()) : x.dims.size() - 1);
  model->node("Softmax", {x}, kF32, x.dims);
  model->attribute("axis", either_end(&model->dice(), axis, x.dims.size()));
}

void norm(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const Sizes last{x.dims.back()};
  std::vector<Value> inputs{x, model->random_floats(last)};
  if (model->dice().one_in(2)) inputs.push_back(model->random_floats(last));
  model->node("LayerNormalization", inputs, kF32, x.dims);
  model->attribute("axis", std::int64_t{-1});
  if (model->dice().one_in(2)) model->attribute("epsilon", 1e-3f);
}

void reduce(ModelBuilder* model) {
  constexpr const char* kOps[] = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd"};
  Dice& dice = model->dice();
  const Value x = pick_floats(model, 1, 4);
  const std::string op = dice.pick(kOps);
  const bool keep = dice.one_in(2);
  std::vector<std::int64_t> axes;
  Sizes dims;
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    const bool gone = dice.one_in(2);
    if (gone) axes.push_back(either_end(&dice, static_cast<std::int64_t>(i), x.dims.size()));
    if (!gone) dims.push_back(x.dims[i]);
    if (gone && keep) dims.push_back(1);
  }
  if (axes.empty()) return;
  const std::int64_t as_input = op == "ReduceSum" ? 13 : 18;
  std::vector<std::string> inputs{x.name};
  add_axes(model, &inputs, as_input, axes);
  model->node(op, inputs, kF32, dims);
  if (model->opset() < as_input) model->attribute("axes", axes);
  model->attribute("keepdims", std::int64_t{keep});
}

void matmul(ModelBuilder* model) {
  const Value x = pick_floats(model, 2, 4);
  const std::int64_t columns = model->dice().between(1, 8);
  Sizes dims = x.dims;
  Sizes other{x.dims.back(), columns};
  if (model->dice().one_in(3)) other.insert(other.begin(), x.dims.begin(), x.dims.end() - 2);
  dims.back() = columns;
  model->node("MatMul", {x, model->random_floats(other)}, kF32, dims);
}

void gemm(ModelBuilder* model) {
  Dice& dice = model->dice();
  const Value x = pick_floats(model, 2, 2);
  const bool ta = dice.one_in(2), tb = dice.one_in(2);
  const std::int64_t rows = x.dims[ta ? 1 : 0], depth = x.dims[ta ? 0 : 1], columns = dice.between(1, 8);
  std::vector<Value> inputs{x, model->random_floats(tb ? Sizes{columns, depth} : Sizes{depth, columns})};
  if (dice.one_in(2)) inputs.push_back(model->random_floats(narrower(&dice, {rows, columns})));
  model->node("Gemm", inputs, kF32, {rows, columns});
  model->attribute("transA", std::int64_t{ta});
  model->attribute("transB", std::int64_t{tb});
  if (dice.one_in(3)) model->attribute("alpha", 0.5f);
}

void transpose(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  std::vector<std::int64_t> order(x.dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[model->dice().below(i)]);
  Sizes dims;
  for (const std::int64_t axis : order) dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
  model->node("Transpose", {x}, kF32, dims);
  model->attribute("perm", order);
}

void reshape(ModelBuilder* model) {
  Dice& dice = model->dice();
  const Value x = pick_floats(model, 1, 4);
  Sizes dims = x.dims;
  const std::size_t at = dice.below(dims.size());
  if (dims.size() > 1 && at + 1 < dims.size() && dice.one_in(2)) {
    dims[at] *= dims[at + 1];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  } else if (dims[at] % 2 == 0) {
    dims[at] /= 2;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 2);
  } else {
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 1);
  }
  std::vector<std::int64_t> shape = dims;
  if (dice.one_in(2) && count_of(dims) > 0) shape[dice.below(shape.size())] = -1;
  if (dice.one_in(4)) {
    // As exporters write it: the shape from the tensor's own.
    const Value own = model->node("Shape", {x}, kI64, {static_cast<std::int64_t>(x.dims.size())});
    const Value first = model->node("Gather", {own, model->list({0})}, kI64, {1});
    if (shape[0] == x.dims[0]) {
      const Value rest = model->list({shape.begin() + 1, shape.end()});
      const Value joined = model->node("Concat", {first, rest}, kI64, {static_cast<std::int64_t>(shape.size())});
      model->attribute("axis", std::int64_t{0});
      model->node("Reshape", {x, joined}, kF32, dims);
      if (count_of(dims) == 0) model->attribute("allowzero", std::int64_t{1});
      return;
    }
  }
  model->node("Reshape", {x, model->list(shape)}, kF32, dims);
  if (count_of(dims) == 0) model->attribute("allowzero", std::int64_t{1});
}

void slice(ModelBuilder* model) {
  Dice& dice = model->dice();
  const Value x = pick_floats(model, 1, 4);
  const std::size_t axis = dice.below(x.dims.size());
  const std::int64_t n = x.dims[axis];
  const std::int64_t begin = dice.between(0, std::max<std::int64_t>(n - 1, 0));
  const std::int64_t end = dice.between(begin, n);
  const std::int64_t step = dice.between(1, 2);
  Sizes dims = x.dims;
  dims[axis] = (end - begin + step - 1) / step;
  model->node("Slice",
              {x, model->list({begin}), model->list({end}),
               model->list({either_end(&dice, static_cast<std::int64_t>(axis), x.dims.size())}), model->list({step})},
              kF32, dims);
}

void concat(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const std::size_t axis = model->dice().below(x.dims.size());
  Sizes other = x.dims;
  other[axis] = model->dice().between(0, 4);
  Sizes dims = x.dims;
  dims[axis] += other[axis];
  model->node("Concat", {x, model->random_floats(other)}, kF32, dims);
  model->attribute("axis", either_end(&model->dice(), static_cast<std::int64_t>(axis), x.dims.size()));
}

void split(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const std::size_t axis = model->dice().below(x.dims.size());
  const std::int64_t first = model->dice().between(0, x.dims[axis]);
  Sizes a = x.dims, b = x.dims;
  a[axis] = first;
  b[axis] -= first;
  model->node("Split", {x, model->list({a[axis], b[axis]})}, kF32, a);
  model->doubt(model->also(kF32, b), x.doubts);
  model->attribute("axis", static_cast<std::int64_t>(axis));
}

void gather(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const std::size_t axis = model->dice().below(x.dims.size());
  const std::int64_t n = x.dims[axis];
  if (n == 0) return;
  std::vector<std::int64_t> indices(model->dice().below(4) + 1);
  for (std::int64_t& index : indices) index = model->dice().between(-n, n - 1);
  Sizes dims = x.dims;
  dims[axis] = static_cast<std::int64_t>(indices.size());
  model->node("Gather", {x, model->list(indices)}, kF32, dims);
  model->attribute("axis", static_cast<std::int64_t>(axis));
}

void squeeze(ModelBuilder* model) {
  const Value x = pick_floats(model, 0, 3);
  if (model->dice().one_in(4)) {
    // Without axes: how many are left is open where a size is a name.
    Sizes rest = x.dims;
    std::erase(rest, 1);
    model->node("Squeeze", {x}, kF32, rest);
    return;
  }
  const auto axis = static_cast<std::int64_t>(model->dice().below(x.dims.size() + 1));
  Sizes dims = x.dims;
  dims.insert(dims.begin() + axis, 1);
  const Value wide = model->node("Unsqueeze", {x, model->list({axis})}, kF32, dims);
  if (model->dice().one_in(2)) model->node("Squeeze", {wide, model->list({axis})}, kF32, x.dims);
}

void expand(ModelBuilder* model) {
  const Value x = pick_floats(model, 0, 3);
  Sizes dims = x.dims;
  for (std::int64_t& dim : dims) {
    if (dim == 1 && model->dice().one_in(2)) dim = model->dice().between(1, 4);
  }
  if (model->dice().one_in(2)) dims.insert(dims.begin(), model->dice().between(1, 3));
  model->node("Expand", {x, model->list(dims)}, kF32, dims);
}

void pad(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  std::vector<std::int64_t> pads(2 * x.dims.size());
  Sizes dims = x.dims;
  for (std::size_t i = 0; i < pads.size(); ++i) {
    pads[i] = model->dice().one_in(2) ? 0 : model->dice().between(0, 2);
    dims[i % x.dims.size()] += pads[i];
  }
  model->node("Pad", {x, model->list(pads)}, kF32, dims);
}

void cumsum(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  model->node("CumSum", {x, model->integers({}, {static_cast<std::int64_t>(model->dice().below(x.dims.size()))})}, kF32,
              x.dims);
  if (model->dice().one_in(2)) model->attribute("exclusive", std::int64_t{1});
}

void clip(ModelBuilder* model) {
  const Value x = pick_floats(model, 0, 4);
  model->node("Clip", {x.name, model->scalar(-0.5f).name, model->dice().one_in(2) ? model->scalar(0.5f).name : ""},
              kF32, x.dims);
}

void triangle(ModelBuilder* model) {
  const Value x = pick_floats(model, 2, 4);
  model->node("Trilu", {x, model->integers({}, {model->dice().between(-2, 2)})}, kF32, x.dims);
  model->attribute("upper", model->dice().between(0, 1));
}

void flatten(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const auto axis = static_cast<std::ptrdiff_t>(model->dice().below(x.dims.size() + 1));
  model->node("Flatten", {x}, kF32,
              {count_of({x.dims.begin(), x.dims.begin() + axis}), count_of({x.dims.begin() + axis, x.dims.end()})});
  model->attribute("axis", std::int64_t{axis});
}

}  // namespace

void add_operator(ModelBuilder* model) {
  constexpr void (*kMakers[])(ModelBuilder*) = {
      unary, binary, binary, select, through_cast, softmax, norm, reduce, matmul, gemm,     transpose, reshape,
      slice, concat, split,  gather, squeeze,      expand,  pad,  cumsum, clip,   triangle, flatten};
  model->dice().pick(kMakers)(model);
}

}  // namespace headway::fuzz
