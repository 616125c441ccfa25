// What fusion looks for, as exporters write it: attention with its masks and scales in several forms, norms,
// activations, projections. Parts are left out at random, and values in the middle are read by others now and then.
#include <cmath>
#include <limits>

#include "tests/fuzz/make_model.h"

namespace headway::fuzz {
namespace {

/// x as [B, S, E] of the model or a fresh input. Finite: what a mask hides, or a probability of 0, leaves an infinite
/// value out fused, where the nodes multiply it by 0 and give NaN.
Value tokens(ModelBuilder* model) {
  for (auto value = model->values().rbegin(); value != model->values().rend(); ++value) {
    if ((value->doubts & (kNotFinite | kFills)) != 0) continue;
    if (value->type == kF32 && value->dims.size() == 3 && value->dims[2] % 2 == 0 && value->dims[2] > 0 &&
        model->dice().one_in(2)) {
      return *value;
    }
  }
  Dice& dice = model->dice();
  return model->input(kF32, {dice.between(1, 2), dice.between(1, 5), 2 * dice.between(1, 4)});
}

Value linear(ModelBuilder* model, const Value& x, std::int64_t columns) {
  Sizes dims = x.dims;
  dims.back() = columns;
  Value y = model->node("MatMul", {x, model->random_floats({x.dims.back(), columns})}, kF32, dims);
  if (model->dice().one_in(2)) {
    const Value bias = model->random_floats({columns});
    y = model->node("Add", model->dice().one_in(2) ? std::vector<Value>{bias, y} : std::vector<Value>{y, bias}, kF32,
                    dims);
  }
  return y;
}

/// [B, S, H·D] to [B, H, S, D], or [B, H, D, S] when it is to be a transposed key in one go.
Value split_heads(ModelBuilder* model, const Value& x, std::int64_t heads, bool transposed) {
  const std::int64_t b = x.dims[0], s = x.dims[1], d = x.dims[2] / heads;
  const Value four = model->node(
      "Reshape",
      {x, model->list({model->dice().one_in(2) ? 0 : b, b > 0 && model->dice().one_in(2) ? -1 : s, heads, d})}, kF32,
      {b, s, heads, d});
  const Value out = model->node("Transpose", {four}, kF32, transposed ? Sizes{b, heads, d, s} : Sizes{b, heads, s, d});
  model->attribute("perm", transposed ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3});
  return out;
}

/// Something that is added to scores [B, H, Sq, Skv], or fills in over them. They are finite: a finite fill takes the
/// place of a score that is not; fused, it is added to it.
Value add_mask(ModelBuilder* model, const Value& scores) {
  Dice& dice = model->dice();
  const Sizes& dims = scores.dims;
  const Sizes forms[] = {
      {dims[2], dims[3]}, {1, 1, dims[2], dims[3]}, {dims[0], 1, 1, dims[3]}, {1, 1, 1, dims[3]}, dims};
  const Sizes form = dice.pick(forms);
  std::vector<float> numbers(static_cast<std::size_t>(count_of(form)));
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  constexpr float kFillNumbers[] = {kHidden, -1e4f, -3.4028235e38f, -1e9f};
  const bool fills_in = dice.one_in(2);
  const float fill = dice.pick(kFillNumbers);
  // A row that is hidden whole is NaN.
  const unsigned doubts = fill == kHidden ? kFills | kNotFinite : static_cast<unsigned>(kFills);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % dims[3];
    const auto row = static_cast<std::int64_t>(i) / dims[3] % (form.size() < 2 ? 1 : form[form.size() - 2]);
    const bool hidden = dice.one_in(2) ? column > row : dice.one_in(3);
    numbers[i] = hidden ? fill : 0;
  }
  if (fills_in) {
    // As a condition with a fill.
    std::vector<float> shown(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) shown[i] = numbers[i] == 0 ? 1.0f : -1.0f;
    const Value condition = model->node("Greater", {model->floats(form, shown), model->scalar(0)}, kBool, form);
    return model->doubt(model->node("Where", {condition, scores, model->scalar(fill)}, kF32, dims), doubts);
  }
  return model->doubt(model->node("Add", {scores, model->floats(form, numbers)}, kF32, dims), doubts);
}

Value scaled(ModelBuilder* model, const Value& x, float factor) {
  if (model->dice().one_in(2)) return model->node("Mul", {x, model->scalar(factor)}, kF32, x.dims);
  return model->node("Div", {x, model->scalar(1 / factor)}, kF32, x.dims);
}

void attention(ModelBuilder* model) {
  Dice& dice = model->dice();
  const Value x = tokens(model);
  const std::int64_t heads = dice.one_in(2) ? 1 : 2;
  const std::int64_t width = x.dims[2];
  const bool cross = dice.one_in(4);
  const Value memory = cross ? model->input(kF32, {x.dims[0], dice.between(0, 5), width}) : x;
  Value q = split_heads(model, linear(model, x, width), heads, false);
  const bool in_one = dice.one_in(2);
  Value k = split_heads(model, linear(model, memory, width), heads, in_one);
  const Value v = split_heads(model, linear(model, memory, width), heads, false);
  const std::int64_t keys = memory.dims[1];
  if (!in_one) {
    k = model->node("Transpose", {k}, kF32, {k.dims[0], heads, k.dims[3], keys});
    model->attribute("perm", std::vector<std::int64_t>{0, 1, 3, 2});
  }
  const float scale = 1 / std::sqrt(static_cast<float>(width / heads));
  if (dice.one_in(3)) q = scaled(model, q, std::sqrt(scale));
  Value scores = model->node("MatMul", {q, k}, kF32, {x.dims[0], heads, x.dims[1], keys});
  if (dice.one_in(2)) scores = scaled(model, scores, scale);
  if (dice.one_in(6)) {
    scores =
        model->node("Mul", {model->node("Tanh", {scaled(model, scores, 0.2f)}, kF32, scores.dims), model->scalar(5)},
                    kF32, scores.dims);
  }
  if (dice.one_in(2)) scores = add_mask(model, scores);
  if (dice.one_in(6)) scores = add_mask(model, scores);
  Value probs = model->node("Softmax", {scores}, kF32, scores.dims);
  model->attribute("axis", std::int64_t{-1});
  if (dice.one_in(8)) probs = model->node("Identity", {probs}, kF32, probs.dims);
  Value context = model->node("MatMul", {probs, v}, kF32, {x.dims[0], heads, x.dims[1], width / heads});
  if (dice.one_in(5)) return;
  context = model->node("Transpose", {context}, kF32, {x.dims[0], x.dims[1], heads, width / heads});
  model->attribute("perm", std::vector<std::int64_t>{0, 2, 1, 3});
  context = model->node("Reshape", {context, model->list({x.dims[0], x.dims[1], width})}, kF32, x.dims);
  if (dice.one_in(2)) context = linear(model, context, width);
  if (dice.one_in(2)) model->node("Add", {context, x}, kF32, x.dims);
}

/// [a, b, S, D] or [S, a · b, D] to [a · b, S, D].
Value joined_heads(ModelBuilder* model, std::int64_t joined, std::int64_t tokens, std::int64_t width) {
  Dice& dice = model->dice();
  const std::int64_t outer = dice.one_in(4) ? 1 : dice.one_in(4) ? joined : dice.one_in(2) ? 2 : joined / 2;
  if (dice.one_in(3)) {
    // As torch.nn.MultiheadAttention: batch and heads side by side.
    const Value x = linear(model, model->input(kF32, {tokens, joined / outer, outer * width}), outer * width);
    const Value side = model->node("Reshape", {x, model->list({dice.one_in(2) ? tokens : 0, joined, width})}, kF32,
                                   {tokens, joined, width});
    const Value out = model->node("Transpose", {side}, kF32, {joined, tokens, width});
    model->attribute("perm", std::vector<std::int64_t>{1, 0, 2});
    return out;
  }
  const Value x = model->input(kF32, {outer, joined / outer, tokens, width});
  return model->node("Reshape", {x, model->list({joined, tokens, width})}, kF32, {joined, tokens, width});
}

/// Attention over batch and heads as one axis, taken apart and joined in any way on it.
void joined_attention(ModelBuilder* model) {
  Dice& dice = model->dice();
  const std::int64_t joined = 2 * dice.between(1, 3), queries = dice.between(1, 4), keys = dice.between(1, 4),
                     width = 2 * dice.between(1, 3);
  const auto apart = [&](const Value& x) {
    const std::int64_t outer = dice.one_in(4) ? 1 : dice.one_in(4) ? joined : dice.one_in(2) ? 2 : joined / 2;
    const Sizes dims{outer, joined / outer, x.dims[1], x.dims[2]};
    return model->node("Reshape", {x, model->list(dims)}, kF32, dims);
  };
  const Value k = model->node("Transpose", {joined_heads(model, joined, keys, width)}, kF32, {joined, width, keys});
  model->attribute("perm", std::vector<std::int64_t>{0, 2, 1});
  Value scores = model->node("MatMul", {joined_heads(model, joined, queries, width), k}, kF32, {joined, queries, keys});
  if (dice.one_in(3)) {
    const std::int64_t batches = dice.one_in(2) ? 1 : joined;
    scores = model->node("Add", {scores, model->random_floats({batches, 1, keys})}, kF32, scores.dims);
  }
  if (dice.one_in(2)) {
    scores = apart(scores);
    if (dice.one_in(2)) scores = add_mask(model, scores);
    scores = model->node("Reshape", {scores, model->list({joined, queries, keys})}, kF32, {joined, queries, keys});
  }
  const Value probs = model->node("Softmax", {scores}, kF32, scores.dims);
  model->attribute("axis", std::int64_t{-1});
  const Value context =
      model->node("MatMul", {probs, joined_heads(model, joined, keys, width)}, kF32, {joined, queries, width});
  if (dice.one_in(3)) apart(probs);
  if (dice.one_in(2)) {
    apart(context);
    return;
  }
  const Value turned = model->node("Transpose", {context}, kF32, {queries, joined, width});
  model->attribute("perm", std::vector<std::int64_t>{1, 0, 2});
  const std::int64_t heads = dice.one_in(2) ? 2 : joined;
  const Sizes tokens{queries, joined / heads, heads * width};
  linear(model, model->node("Reshape", {turned, model->list(tokens)}, kF32, tokens), heads * width);
}

/// The operator of opset 23, or ONNX Runtime's, on joined heads.
void attention_operator(ModelBuilder* model) {
  Dice& dice = model->dice();
  const Value x = tokens(model);
  const std::int64_t width = x.dims[2];
  const std::int64_t heads = dice.one_in(2) ? 1 : 2;
  std::vector<std::string> inputs{linear(model, x, width).name, linear(model, x, width).name,
                                  linear(model, x, width).name};
  if (model->opset() >= 23) {
    if (dice.one_in(2)) inputs.push_back(model->random_floats({x.dims[1], x.dims[1]}).name);
    model->node("Attention", inputs, kF32, x.dims);
    model->attribute("q_num_heads", heads);
    model->attribute("kv_num_heads", heads);
    if (dice.one_in(2)) model->attribute("is_causal", std::int64_t{1});
    if (dice.one_in(4)) model->attribute("softcap", 2.0f);
    return;
  }
  model->node("MultiHeadAttention", inputs, kF32, x.dims);
  model->domain("com.microsoft");
  model->attribute("num_heads", heads);
}

void decomposed_norm(ModelBuilder* model) {
  Dice& dice = model->dice();
  // The squares of fills overflow, and their distances from their mean are lost, in the nodes but not in the operator.
  const Value x = without(model, kFills, pick_floats(model, 2, 4));
  Sizes row = x.dims;
  row.back() = 1;
  const auto mean = [&](const Value& of) {
    std::vector<std::string> inputs{of.name};
    if (model->opset() >= 18) inputs.push_back(model->list({-1}).name);
    const Value made = model->node("ReduceMean", inputs, kF32, row);
    if (model->opset() < 18) model->attribute("axes", std::vector<std::int64_t>{-1});
    return made;
  };
  const bool layer = dice.one_in(2);
  const Value centred = layer ? model->node("Sub", {x, mean(x)}, kF32, x.dims) : x;
  const Value square = dice.one_in(2) ? model->node("Pow", {centred, model->scalar(2)}, kF32, x.dims)
                                      : model->node("Mul", {centred, centred}, kF32, x.dims);
  const Value deviation =
      model->node("Sqrt", {model->node("Add", {mean(square), model->scalar(1e-3f)}, kF32, row)}, kF32, row);
  Value y = dice.one_in(2)
                ? model->node("Div", {centred, deviation}, kF32, x.dims)
                : model->node("Mul", {centred, model->node("Reciprocal", {deviation}, kF32, row)}, kF32, x.dims);
  y = model->node("Mul", {y, model->random_floats({x.dims.back()})}, kF32, x.dims);
  if (layer) model->node("Add", {y, model->random_floats({x.dims.back()})}, kF32, x.dims);
}

void gelu(ModelBuilder* model) {
  const Value x = pick_floats(model, 1, 4);
  const auto two = [&](const char* op, const Value& a, const Value& b) {
    return model->node(op, {a, b}, kF32, x.dims);
  };
  if (model->dice().one_in(2)) {
    const Value erf = model->node("Erf", {two("Div", x, model->scalar(std::sqrt(2.0f)))}, kF32, x.dims);
    model->doubt(two("Mul", two("Mul", x, two("Add", erf, model->scalar(1))), model->scalar(0.5f)), kCancelled);
    return;
  }
  const Value cube = two("Mul", model->scalar(0.044715f), two("Pow", x, model->scalar(3)));
  const Value inner = two("Mul", model->scalar(0.79788456f), two("Add", x, cube));
  const Value tanh = model->node("Tanh", {inner}, kF32, x.dims);
  model->doubt(two("Mul", two("Mul", model->scalar(0.5f), x), two("Add", model->scalar(1), tanh)), kCancelled);
}

void feed_forward(ModelBuilder* model) {
  const Value x = tokens(model);
  Value y = linear(model, x, model->dice().between(1, 16));
  y = model->node("Relu", {y}, kF32, y.dims);
  linear(model, y, x.dims[2]);
}

}  // namespace

void add_pattern(ModelBuilder* model) {
  constexpr void (*kMakers[])(ModelBuilder*) = {attention,          attention,       attention, joined_attention,
                                                attention_operator, decomposed_norm, gelu,      feed_forward};
  model->dice().pick(kMakers)(model);
}

}  // namespace headway::fuzz
