// See model_files.h.
#include "tools/model/model_files.h"

#include <algorithm>

#include "tools/model/tensors.h"

namespace headway::tools {

NamedTensors run_on(const Session& session, const SafetensorsFile& inputs, const Threads& threads) {
  std::vector<ConstTensorView> views;
  for (const GraphInput& input : session.graph().inputs()) {
    views.push_back(inputs.tensor(session.graph().value_name(input.value)));
  }
  std::vector<Tensor> outputs = session.run(views, threads);
  NamedTensors named;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    named.emplace(session.graph().outputs()[i].name, std::move(outputs[i]));
  }
  return named;
}

ValueComparison compare_live_rows(const std::string& name, const ConstTensorView& got, const ConstTensorView& expected,
                                  const ConstTensorView& mask) {
  const bool by_token = mask && mask.rank() == 2 && expected.rank() >= 2 && got.dims == expected.dims &&
                        mask.dims[0] == expected.dims[0] && mask.dims[1] == expected.dims[1];
  if (!by_token) return compare_values(name, got, expected);
  const std::vector<double> live = values_of(mask);
  ValueComparison worst;
  for (std::int64_t b = 0; b < mask.dims[0]; ++b) {
    for (std::int64_t s = 0; s < mask.dims[1]; ++s) {
      if (live[static_cast<std::size_t>(b * mask.dims[1] + s)] == 0) continue;
      const ValueComparison row =
          compare_values(name, got.selected(0, b).selected(0, s), expected.selected(0, b).selected(0, s));
      worst.worst = std::max(worst.worst, row.worst);
      worst.worst_over_bound = std::max(worst.worst_over_bound, row.worst_over_bound);
      worst.largest_expected = std::max(worst.largest_expected, row.largest_expected);
    }
  }
  return worst;
}

}  // namespace headway::tools
