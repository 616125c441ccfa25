// See make_model.h: the order of the parts.
#include "tests/fuzz/make_model.h"

#include <algorithm>

namespace headway::fuzz {

Sizes random_dims(Dice* dice, std::size_t rank) {
  Sizes dims;
  for (std::size_t i = 0; i < rank; ++i) {
    // 1 broadcasts, 0 is empty; the rest is small.
    dims.push_back(dice->one_in(40) ? 0 : dice->one_in(5) ? 1 : dice->between(2, 6));
  }
  return dims;
}

Value pick_floats(ModelBuilder* model, std::size_t min_rank, std::size_t max_rank) {
  Dice& dice = model->dice();
  std::vector<Value> fitting;
  for (const Value& value : model->values()) {
    if (value.type == kF32 && value.dims.size() >= min_rank && value.dims.size() <= max_rank &&
        count_of(value.dims) <= 4096) {
      fitting.push_back(value);
    }
  }
  if (!fitting.empty() && !dice.one_in(6)) {
    // The latest more often than the first, so that chains grow.
    const std::size_t back = std::min(dice.below(fitting.size()), dice.below(fitting.size()));
    return fitting[fitting.size() - 1 - back];
  }
  const std::size_t rank = min_rank + dice.below(max_rank - min_rank + 1);
  return model->input(kF32, random_dims(&dice, rank));
}

Value without(ModelBuilder* model, unsigned doubts, const Value& value) {
  return (value.doubts & doubts) == 0 ? value : model->input(value.type, value.dims);
}

onnx::ModelProto make_model(Dice* dice, const MakeOptions& options) {
  constexpr std::int64_t kOpsets[] = {13, 14, 15, 17, 18, 20, 21, 22, 23, 24};
  ModelBuilder model(dice, dice->pick(kOpsets));
  const int steps = static_cast<int>(dice->between(1, 14));
  for (int i = 0; i < std::min(steps, options.max_steps); ++i) {
    if (dice->one_in(3)) {
      add_pattern(&model);
    } else {
      add_operator(&model);
    }
  }
  return model.finish();
}

}  // namespace headway::fuzz
