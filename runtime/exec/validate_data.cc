// The checks of the memory that a run is given, and of its outputs.
#include <cstdint>

#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"
#include "runtime/base/quoted.h"
#include "runtime/exec/in_place.h"
#include "runtime/exec/validate.h"

namespace headway {
namespace {

/// `kind` is "input" or "output".
template <class Byte>
void check_data(const char* kind, const std::string& label, const BasicTensorView<Byte>& view) {
  if (view.count() == 0) return;
  require(view.data != nullptr, kind, ' ', Quoted{label}, ' ', view.dims, " has no memory");
  const std::size_t alignment = size_bytes(view.type);
  const std::size_t off = reinterpret_cast<std::uintptr_t>(view.data) % alignment;
  require(off == 0, kind, ' ', Quoted{label}, " lies ", off, " bytes beside a multiple of ", alignment,
          ", the size of its ", type_name(view.type), " elements");
  require(view.strides.rank() == view.rank(), kind, ' ', Quoted{label}, " has ", view.strides.rank(),
          " strides, expected ", view.rank());
}

}  // namespace

void check_input_data(const Graph& graph, std::span<const ConstTensorView> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_data("input", graph.value_name(graph.inputs()[i].value), inputs[i]);
  }
}

void check_outputs(const Graph& graph, std::span<const TensorInfo> expected, std::span<const ExtendedInput> extended,
                   std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs) {
  require(outputs.size() == expected.size(), "run got ", outputs.size(), " outputs, expected ", expected.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& label = graph.outputs()[i].name;
    const TensorView& output = outputs[i];
    require(output.present, "output ", Quoted{label}, " is absent");
    require(output.type == expected[i].type, "output ", Quoted{label}, " is ", type_name(output.type), ", expected ",
            type_name(expected[i].type));
    const bool in_place = is_bound_in_place(extended[i], inputs, output);
    const auto past = static_cast<std::size_t>(extended[i].input);  // where there is one
    const bool within = in_place && extended[i].within && output.dims == inputs[past].dims;
    require(within || output.dims == expected[i].dims, "output ", Quoted{label}, " is ", output.dims, ", expected ",
            expected[i].dims);
    check_data("output", label, output);
    if (in_place) check_no_self_overlap(label.c_str(), output);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool extends = extended[i].input >= 0 && k == past;
      if (in_place && extends) continue;
      require(!may_overlap(output, inputs[k]), "output ", Quoted{label}, " overlaps input ",
              Quoted{graph.value_name(graph.inputs()[k].value)},
              extends ? ", expected apart from it or of its first element and strides" : "");
    }
    for (std::size_t k = 0; k < i; ++k) {
      require(!may_overlap(output, outputs[k]), "output ", Quoted{label}, " overlaps output ",
              Quoted{graph.outputs()[k].name});
    }
  }
}

}  // namespace headway
