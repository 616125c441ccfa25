// Random models that are right: single operators at random, and the patterns that fusion looks for, with their parts
// left out or written in another way. Decides shapes; knows nothing of how a model is run.
#pragma once

#include "tests/fuzz/model_builder.h"

namespace headway::fuzz {

struct MakeOptions {
  int max_steps = 14;  ///< parts appended one after the other: the first n of a case are the same whatever comes after
};

/// The same model for the same dice and options.
onnx::ModelProto make_model(Dice* dice, const MakeOptions& options = {});

/// Appends one operator on values that are there (make_operators.cc).
void add_operator(ModelBuilder* model);
/// Appends attention, a norm, an activation or a projection as exporters write them (make_patterns.cc).
void add_pattern(ModelBuilder* model);

/// A value that fits, picked among those of the model, else made: an input or a constant.
Value pick_floats(ModelBuilder* model, std::size_t min_rank, std::size_t max_rank);
/// The value, or an input of its dims where one of these doubts is about it.
Value without(ModelBuilder* model, unsigned doubts, const Value& value);
Sizes random_dims(Dice* dice, std::size_t rank);

}  // namespace headway::fuzz
