// Operators that give the same elements in the same order other dims: Reshape, Flatten, Squeeze, Unsqueeze, Identity,
// Dropout at inference. Decides the dims; the session makes views of them, and where it cannot, they copy.
#include <optional>
#include <utility>

#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The requested dims with one −1 inferred; 0 takes the input's dim unless `allow_zero`.
class Resolved {
 public:
  Resolved(const char* op, const InferContext& node, const DimList& wanted) : op_(op), from_(node.inputs[0].dims) {
    const bool allow_zero = node.attributes.integer("allowzero", 0) != 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) add(node, i, wanted[i], allow_zero);
    if (inferred_) infer_missing(node);
    if (from_ && all_numbers(*from_) && all_numbers(dims)) check_counts();
  }

  DimList dims;

 private:
  void add(const InferContext& node, std::size_t i, const Dim& wanted, bool allow_zero) {
    require(!wanted.is_number() || wanted.factor >= -1, op_, " dims[", i, "] is ", wanted, ", expected -1 or more");
    if (wanted.is(-1)) {
      require(!inferred_, op_, " dims has -1 at ", inferred_.value_or(0), " and at ", i, ", expected one at most");
      inferred_ = i;
      dims.emplace_back(1);
      return;
    }
    Dim dim = wanted;
    if (wanted.is(0) && !allow_zero) {
      require(!from_ || i < from_->size(), op_, " dims[", i, "] is 0 but the input has rank ",
              from_ ? from_->size() : 0);
      dim = from_ ? (*from_)[i] : node.unknown_size(static_cast<std::int64_t>(i));
    } else if (!is_size(node, wanted)) {
      dim = node.unknown_size(static_cast<std::int64_t>(i));
    }
    if (given_.is_number() && dim.is_number()) {
      std::int64_t product = 0;
      require(!__builtin_mul_overflow(given_.factor, dim.factor, &product), op_, " dims up to dims[", i,
              "] do not fit 63 bits");
    }
    given_ = given_ * dim;
    dims.push_back(std::move(dim));
  }

  void infer_missing(const InferContext& node) {
    const std::size_t at = *inferred_;
    std::optional<Dim> rest;
    if (from_) {
      const Dim all = count_of(*from_);
      if (all.is_number() && given_.is_number()) {
        require(given_.factor != 0 && all.factor % given_.factor == 0, op_, " of ", *from_, " cannot infer dims[", at,
                "]: ", all, " elements over ", given_);
      }
      rest = divided(all, given_);
    }
    dims[at] = rest ? *rest : node.unknown_size(static_cast<std::int64_t>(at));
  }

  void check_counts() const {
    const Dim before = count_of(*from_);
    const Dim after = count_of(dims);
    require(before == after, op_, " of ", *from_, " with ", before, " elements to ", dims, " with ", after);
  }

  const char* op_;
  const std::optional<DimList>& from_;
  Dim given_ = 1;
  std::optional<std::size_t> inferred_;
};

using DimsOf = std::optional<DimList> (*)(const char*, const InferContext&);

/// The shape is the second input, or the attribute dims.
std::optional<DimList> reshaped(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  if (!has_input(node, 1)) {
    const std::vector<std::int64_t> dims = node.attributes.integers("dims");
    return Resolved(op, node, DimList(dims.begin(), dims.end())).dims;
  }
  if (const auto wanted = elements_of(op, node, 1, "shape")) return Resolved(op, node, *wanted).dims;
  const auto& count = node.inputs[1].dims;
  if (!count || count->size() != 1 || !(*count)[0].is_number() || (*count)[0].factor > kMaxRank) return std::nullopt;
  return node.unknown_sizes(static_cast<std::size_t>((*count)[0].factor));
}

std::optional<DimList> flattened(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  std::int64_t axis = node.attributes.integer("axis", 1);
  if (!node.inputs[0].dims) return node.unknown_sizes(2);
  const DimList& dims = *node.inputs[0].dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  require(axis >= -rank && axis <= rank, op, " axis is ", axis, ", expected ", -rank, " to ", rank);
  if (axis < 0) axis += rank;
  return DimList{count_of(DimList(dims.begin(), dims.begin() + axis)),
                 count_of(DimList(dims.begin() + axis, dims.end()))};
}

std::optional<DimList> squeezed(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  bool given = false;
  const auto named = integers_of(op, node, 1, "axes", &given);
  if (!node.inputs[0].dims || !named) return std::nullopt;
  const DimList& from = *node.inputs[0].dims;
  if (!given && !all_numbers(from)) return std::nullopt;  // without axes every 1 goes, and that may be one
  std::vector<bool> drop(from.size());
  for (std::size_t a = 0; a < from.size() && !given; ++a) drop[a] = from[a].is(1);
  for (const int a : normalised_axes(op, *named, from.size())) {
    const auto axis = static_cast<std::size_t>(a);
    require(may_equal(from[axis], Dim(1)), op, " axis ", axis, " of ", from, " is ", from[axis], ", expected 1");
    drop[axis] = true;
  }
  DimList dims;
  for (std::size_t a = 0; a < from.size(); ++a) {
    if (!drop[a]) dims.push_back(from[a]);
  }
  return dims;
}

/// Axes count in the result.
std::optional<DimList> unsqueezed(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  const auto named = integers_of(op, node, 1, "axes");
  if (!node.inputs[0].dims || !named) return std::nullopt;
  const DimList& from = *node.inputs[0].dims;
  const std::size_t rank = from.size() + named->size();
  require(rank <= kMaxRank, op, " gives rank ", rank, ", at most ", kMaxRank, " is supported");
  std::vector<bool> unit(rank);
  for (const int a : normalised_axes(op, *named, rank)) unit[static_cast<std::size_t>(a)] = true;
  DimList dims;
  std::size_t next = 0;
  for (std::size_t a = 0; a < rank; ++a) dims.push_back(unit[a] ? Dim(1) : from[next++]);
  return dims;
}

std::optional<DimList> same(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  return node.inputs[0].dims;
}

OpFunctions view(DimsOf dims_of) {
  return {.infer = [dims_of](const char* op, const InferContext& node) -> Inferred {
            ValueInfo out{.type = {}, .dims = dims_of(op, node), .elements = {}};
            out.type = node.inputs[0].type;
            // Not where the number of elements is one that only a run can refuse.
            const auto& elements = node.inputs[0].elements;
            const bool fits =
                elements &&
                (out.rank() == 0 ? elements->size() == 1
                                 : out.rank() == 1 && (*out.dims)[0].is(static_cast<std::int64_t>(elements->size())));
            if (fits) out.elements = elements;
            return {out};
          },
          .plan =
              [](const char*, const NodeContext&, const Infos&) {
                return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
                  parallel_copy(inputs[0].reshaped(outputs[0].dims), outputs[0], context.threads);
                });
              },
          .aliased_input = [](const NodeContext&, const Infos&) { return 0; }};
}

Inferred infer_dropout(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 3);
  check_outputs(op, node, 2);
  if (has_input(node, 2)) {
    check_type(op, node, 2, {DataType::kBool});
    check_one_element(op, node, 2, "training_mode");
    const bool known = node.constants.size() > 2 && node.constants[2];
    if (known && *node.constants[2].data != std::byte{0}) {
      fail(ErrorCode::kUnsupported, op, " training_mode is true, expected false: nothing is dropped at inference");
    }
    if (!known && node.is_final()) {
      fail(ErrorCode::kUnsupported, op, " input 2 (training_mode) is computed from data at run time, expected to be 0");
    }
  }
  Inferred outputs{like(node.inputs[0])};
  if (node.num_outputs > 1) outputs.push_back({.type = DataType::kBool, .dims = node.inputs[0].dims, .elements = {}});
  return outputs;
}

std::unique_ptr<NodePlan> plan_dropout(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    parallel_copy(inputs[0], outputs[0], context.threads);
    if (outputs.size() > 1 && outputs[1]) std::fill_n(outputs[1].as<bool>(), outputs[1].count(), true);
  });
}

}  // namespace

void add_reshape_ops(Registry* registry) {
  registry->add(make_op("Reshape", view(reshaped)));
  registry->add(make_op("Flatten", view(flattened)));
  registry->add(make_op("Squeeze", view(squeezed)));
  registry->add(make_op("Unsqueeze", view(unsqueezed)));
  registry->add(make_op("Identity", view(same)));
  registry->add(make_op(
      "Dropout", {.infer = infer_dropout,
                  .plan = plan_dropout,
                  .aliased_input = [](const NodeContext& n, const Infos&) { return n.num_outputs == 1 ? 0 : -1; }}));
}

}  // namespace headway
