// See constant_table.h.
#include "runtime/exec/constant_table.h"

#include <utility>

namespace headway {

ConstantTable::ConstantTable(const Graph& graph, std::shared_ptr<MemoryBudget> budget)
    : entries_(graph.num_values()), budget_(std::move(budget)) {
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    const Tensor* constant = graph.constant(value);
    if (constant == nullptr) continue;
    const ExternalBuffer* foreign = constant->foreign();
    entries_[value] = {
        foreign ? ConstTensorView(foreign->bytes(), constant->type(), constant->dims()) : constant->view(), foreign};
    constant_bytes_ += tensor_bytes(constant->type(), constant->dims());
  }
}

ConstantTable::ConstantTable(const ConstantTable* base)
    : entries_(base->entries_),
      budget_(base->budget_),
      constant_bytes_(base->constant_bytes_),
      made_bytes_(base->made_bytes_) {}

ConstTensorView ConstantTable::unaligned_view(ValueId value) const {
  if (value == kNoValue || entries_[value].released) return {};
  return entries_[value].view;
}

TensorInfo ConstantTable::info(ValueId value) const {
  const ConstTensorView& view = entries_[value].view;
  return {view.type, view.dims, view.present};
}

void ConstantTable::set(ValueId value, Tensor tensor) {
  const std::size_t bytes = tensor_bytes(tensor.type(), tensor.dims());
  MemoryCharge charge(budget_);
  charge.add("a value known before the run", bytes);
  auto owner = std::make_shared<Owned>(Owned{std::move(tensor), std::move(charge)});
  const ConstTensorView view = std::as_const(owner->tensor).view();
  entries_[value] = {view, nullptr, std::move(owner)};
  made_bytes_ += bytes;
}

void ConstantTable::set_view(ValueId value, ValueId shown, const TensorInfo& info) {
  const Entry& entry = entries_[shown];
  entries_[value] = {ConstTensorView(entry.view.data, info.type, info.dims), entry.foreign, entry.owner};
}

void ConstantTable::release(ValueId value) {
  Entry& entry = entries_[value];
  if (!entry.owner || entry.released) return;
  if (entry.owner.use_count() == 1) made_bytes_ -= tensor_bytes(entry.view.type, entry.view.dims);
  entry.owner = nullptr;
  entry.released = true;
}

AlignedViews::~AlignedViews() {
  for (const ExternalBuffer* foreign : read_) foreign->advise_unneeded();
}

ConstTensorView AlignedViews::view(ValueId value) {
  ConstTensorView view = table_.unaligned_view(value);
  const ExternalBuffer* foreign = table_.foreign(value);
  if (foreign == nullptr || !view) return view;
  handles_.push_back(foreign->aligned());
  read_.push_back(foreign);
  view.data = handles_.back().get();
  return view;
}

}  // namespace headway
