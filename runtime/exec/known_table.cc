// See known_table.h.
#include "runtime/exec/known_table.h"

#include <utility>

namespace headway {

KnownTable::KnownTable(const Graph& graph) : entries_(graph.num_values()) {
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    const Tensor* constant = graph.constant(value);
    if (constant == nullptr) continue;
    const ForeignBytes* foreign = constant->foreign();
    entries_[value] = {
        foreign ? ConstTensorView(foreign->bytes(), constant->type(), constant->dims()) : constant->view(), foreign};
    constant_bytes_ += tensor_bytes(constant->type(), constant->dims());
  }
}

KnownTable::KnownTable(const KnownTable* base)
    : entries_(base->entries_), constant_bytes_(base->constant_bytes_), made_bytes_(base->made_bytes_) {}

ConstTensorView KnownTable::as_it_lies(ValueId value) const {
  return value == kNoValue ? ConstTensorView() : entries_[value].view;
}

void KnownTable::set(ValueId value, Tensor tensor) {
  made_bytes_ += tensor_bytes(tensor.type(), tensor.dims());
  owned_.push_back(std::move(tensor));
  entries_[value] = {std::as_const(owned_.back()).view(), nullptr};
}

void KnownTable::set_view(ValueId value, ValueId shown, const TensorInfo& info) {
  const Entry& entry = entries_[shown];
  entries_[value] = {ConstTensorView(entry.view.data, info.type, info.dims), entry.foreign};
}

AlignedViews::~AlignedViews() {
  for (const ForeignBytes* foreign : read_) foreign->forget();
}

ConstTensorView AlignedViews::view(ValueId value) {
  ConstTensorView view = table_.as_it_lies(value);
  const ForeignBytes* foreign = table_.foreign(value);
  if (foreign == nullptr || !view) return view;
  handles_.push_back(foreign->aligned());
  read_.push_back(foreign);
  view.data = handles_.back().get();
  return view;
}

}  // namespace headway
