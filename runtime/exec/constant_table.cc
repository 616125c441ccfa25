// See known_table.h.
#include "runtime/exec/constant_table.h"

#include <utility>

namespace headway {

ConstantTable::ConstantTable(const Graph& graph) : entries_(graph.num_values()) {
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
    : entries_(base->entries_), constant_bytes_(base->constant_bytes_), made_bytes_(base->made_bytes_) {}

ConstTensorView ConstantTable::unaligned_view(ValueId value) const {
  return value == kNoValue ? ConstTensorView() : entries_[value].view;
}

void ConstantTable::set(ValueId value, Tensor tensor) {
  made_bytes_ += tensor_bytes(tensor.type(), tensor.dims());
  owned_.push_back(std::move(tensor));
  entries_[value] = {std::as_const(owned_.back()).view(), nullptr};
}

void ConstantTable::set_view(ValueId value, ValueId shown, const TensorInfo& info) {
  const Entry& entry = entries_[shown];
  entries_[value] = {ConstTensorView(entry.view.data, info.type, info.dims), entry.foreign};
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
