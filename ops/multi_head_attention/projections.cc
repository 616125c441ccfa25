// One product in self attention, three otherwise; once over all rows, or once a batch entry.
#include "ops/multi_head_attention/projections.h"

#include <cstring>
#include <string>
#include <utility>

#include "ops/multi_head_attention/layer_zones.h"

namespace headway {
namespace {

/// Weights and biases of the three projections one below the other.
struct Stacked {
  Tensor weight;  // [Nq + Nk + Nv, E]
  Tensor bias;    // [Nq + Nk + Nv]
  bool with_bias = false;
};

Stacked stack(const MultiHeadAttentionWeights& w) {
  const ConstTensorView* weights[] = {&w.query, &w.key, &w.value};
  const ConstTensorView* biases[] = {&w.query_bias, &w.key_bias, &w.value_bias};
  const std::int64_t columns = w.query.dims[0] + w.key.dims[0] + w.value.dims[0];
  const DataType type = w.query.type;
  Stacked all{Tensor(type, {columns, w.query.dims[1]}), Tensor(type, {columns}), false};
  std::memset(all.bias.view().data, 0, tensor_bytes(type, all.bias.dims()));
  std::int64_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t end = begin + weights[i]->dims[0];
    copy_elements(*weights[i], all.weight.view().sliced(0, begin, end));
    if (*biases[i]) {
      copy_elements(*biases[i], all.bias.view().sliced(0, begin, end));
      all.with_bias = true;
    }
    begin = end;
  }
  return all;
}

}  // namespace

Projections::Projections(const MultiHeadAttentionSpec& s, const MultiHeadAttentionWeights& w,
                         const ProjectedLayout& layout, const Projections* same)
    : element_bytes_(static_cast<std::int64_t>(size_bytes(s.type))),
      stacked_(s.self_attention),
      batches_apart_(layout.key_rows > *s.key_len) {
  if (same != nullptr && same->stacked_ != stacked_) same = nullptr;  // one product there, three here, or the reverse
  repeats_ = batches_apart_ ? s.batch : 1;
  const std::int64_t together = batches_apart_ ? 1 : s.batch;
  const auto spec_of = [&](std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t y_stride) {
    return PlannedMatmulSpec{
        .rows = rows, .columns = columns, .depth = depth, .x_stride = depth, .y_stride = y_stride, .type = s.type};
  };
  if (s.self_attention) {
    const Stacked all = stack(w);
    const std::int64_t columns = all.weight.dims()[0];
    add(spec_of(together * s.query_len, columns, s.embed_dim, layout.query.row_stride), all.weight.view(),
        all.with_bias ? ConstTensorView(all.bias.view()) : ConstTensorView(), kQueryInput, layout.query, same);
    return;
  }
  add(spec_of(together * s.query_len, w.query.dims[0], s.embed_dim, layout.query.row_stride), w.query, w.query_bias,
      kQueryInput, layout.query, same);
  add(spec_of(together * *s.key_len, w.key.dims[0], *s.kdim, layout.key.row_stride), w.key, w.key_bias, kKeyInput,
      layout.key, same);
  add(spec_of(together * *s.key_len, w.value.dims[0], *s.vdim, layout.value.row_stride), w.value, w.value_bias,
      kValueInput, layout.value, same);
}

void Projections::add(const PlannedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias,
                      Input input, const ProjectedOperand& target, const Projections* same) {
  const PlannedMatmul* const other = same != nullptr ? &same->products_[products_.size()].matmul : nullptr;
  products_.push_back({PlannedMatmul(spec, weight, bias, other), input, target.offset, target.batch_stride});
}

bool Projections::reads(Input input) const {
  for (const Product& product : products_) {
    if (product.input == input) return true;
  }
  return false;
}

std::size_t Projections::workspace_bytes(int workers) const {
  std::size_t bytes = 0;
  for (const Product& product : products_) bytes += product.matmul.workspace_bytes(workers);
  return bytes;
}

void Projections::run(const InputRows (&inputs)[kInputs], std::byte* projected, std::byte* workspace,
                      const Threads& threads, Profiler* profiler) const {
  std::int64_t tasks = 0;
  for (const Product& product : products_) tasks += product.matmul.tasks() * repeats_;
  threads.parallel_for(tasks, [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, kZoneProjections);
    std::byte* scratch = workspace;
    for (const Product& product : products_) {
      const std::int64_t own = product.matmul.tasks();
      if (task >= own * repeats_) {
        task -= own * repeats_;
        scratch += product.matmul.workspace_bytes(threads.workers());
        continue;
      }
      const std::int64_t batch = task / own;
      const InputRows& rows = inputs[product.input];
      product.matmul.run_task(task % own, worker, rows.data + element_bytes_ * batch * rows.batch_stride,
                              projected + element_bytes_ * (product.y_offset + batch * product.y_batch_stride),
                              scratch);
      if (profiler) scope.add(product.matmul.task_work(task % own));
      return;
    }
  });
}

std::string Projections::explain() const {
  static const char* const kNames[] = {"query", "key", "value"};
  std::string text;
  for (const Product& product : products_) {
    if (!text.empty()) text += "\n";
    text += products_.size() == 1 ? "query, key, value" : kNames[product.input];
    text += ": " + product.matmul.explain();
    if (batches_apart_) text += ", for each of " + std::to_string(repeats_) + " batches";
  }
  return text;
}

}  // namespace headway
