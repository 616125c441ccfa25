// The sums that come first, and the loops.
#include "ops/graph/products/plain_einsum.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "ops/base/numeric.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::size_t kMaxOperands = 8;

std::uint64_t saturating_product(std::uint64_t a, std::int64_t b) {
  std::uint64_t product = 0;
  const bool over = __builtin_mul_overflow(a, static_cast<std::uint64_t>(b), &product);
  return over ? std::numeric_limits<std::uint64_t>::max() : product;
}
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

/// An element of an operand, or of the sums that replace it.
template <class T, class Sum>
struct Place {
  const T* element = nullptr;
  const Sum* sum = nullptr;
  Sum value() const { return sum != nullptr ? *sum : static_cast<Sum>(widen(*element)); }
  void move(std::int64_t by) {
    if (sum != nullptr) {
      sum += by;
    } else {
      element += by;
    }
  }
};

/// Adds up the products of one element of the result: the labels from `level` on are summed over.
template <class T, class Sum>
Sum sum_over(const EinsumEquation& e, std::size_t level, std::span<Place<T, Sum>> at) {
  if (level == e.labels.size()) {
    Sum product{1};
    for (const auto& operand : at) product *= operand.value();
    return product;
  }
  const EinsumLabel& label = e.labels[level];
  Sum sum{};
  for (std::int64_t i = 0; i < label.size; ++i) {
    sum += sum_over(e, level + 1, at);
    for (std::size_t o = 0; o < at.size(); ++o) at[o].move(label.strides[o]);
  }
  for (std::size_t o = 0; o < at.size(); ++o) at[o].move(-label.strides[o] * label.size);
  return sum;
}

}  // namespace

PlainEinsum::PlainEinsum(const char* op, EinsumEquation equation, std::size_t operands)
    : equation_(std::move(equation)) {
  require(operands <= kMaxOperands, op, " has ", operands, " inputs, at most ", kMaxOperands, " are supported");
  const auto first_gone = equation_.labels.begin() + equation_.result_rank;
  sums_nothing_ = std::any_of(first_gone, equation_.labels.end(), [](const auto& label) { return label.size == 0; });
  if (sums_nothing_ || element_count(equation_.result) == 0) return;
  for (std::size_t o = 0; o < operands; ++o) take_own_labels(o);
  count_steps(operands);
  if (steps_ > kMaxSteps) {
    fail(ErrorCode::kUnsupported, op, " has ", steps_ == std::numeric_limits<std::uint64_t>::max() ? "over " : "",
         steps_, " products to add one by one, at most ", kMaxSteps, " are computed");
  }
}

void PlainEinsum::take_own_labels(std::size_t operand) {
  const auto is_own = [&](const EinsumLabel& label) {
    return !label.in_result && label.present[operand] &&
           std::count(label.present.begin(), label.present.end(), true) == 1;
  };
  std::vector<EinsumLabel>& labels = equation_.labels;
  if (std::none_of(labels.begin(), labels.end(), is_own)) return;
  OwnSums sums{operand, {}, {}, 1, num_sums_};
  for (const EinsumLabel& label : labels) {
    if (is_own(label)) sums.own.push_back({label.size, label.strides[operand]});
  }
  std::erase_if(labels, is_own);
  // From the innermost label outwards, as the sums lie.
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    std::int64_t& stride = label->strides[operand];
    if (stride == 0) continue;
    sums.kept.insert(sums.kept.begin(), Loop{label->size, stride});
    stride = sums.count;
    sums.count *= label->size;
  }
  num_sums_ += static_cast<std::size_t>(sums.count);
  sums_.push_back(std::move(sums));
}

void PlainEinsum::count_steps(std::size_t operands) {
  for (const OwnSums& sums : sums_) {
    auto additions = static_cast<std::uint64_t>(sums.count);
    for (const Loop& loop : sums.own) additions = saturating_product(additions, loop.size);
    steps_ = saturating_sum(steps_, additions);
  }
  std::uint64_t products = operands;
  for (const EinsumLabel& label : equation_.labels) products = saturating_product(products, label.size);
  steps_ = saturating_sum(steps_, products);
}

template <class T, class Sum>
Sum PlainEinsum::sum_of(std::span<const Loop> loops, const T* at) {
  if (loops.empty()) return static_cast<Sum>(widen(*at));
  Sum sum{};
  for (std::int64_t i = 0; i < loops[0].size; ++i) sum += sum_of<T, Sum>(loops.subspan(1), at + i * loops[0].stride);
  return sum;
}

template <class T>
void PlainEinsum::run_as(const RunContext& context, std::span<const ConstTensorView> inputs,
                         const TensorView& out) const {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  static_assert(sizeof(Sum) == kSumBytes);
  T* y = out.as<T>();
  if (sums_nothing_) {
    std::fill_n(y, out.count(), T{});
    return;
  }
  auto* all_sums = reinterpret_cast<Sum*>(context.workspace);
  for (const OwnSums& sums : sums_) {
    const T* from = inputs[sums.operand].as<T>();
    context.threads.parallel_for(sums.count, [&](std::int64_t task, int) {
      const T* at = from;
      std::int64_t rest = task;
      for (auto loop = sums.kept.rbegin(); loop != sums.kept.rend(); ++loop) {
        at += rest % loop->size * loop->stride;
        rest /= loop->size;
      }
      all_sums[sums.first + static_cast<std::size_t>(task)] = sum_of<T, Sum>(sums.own, at);
    });
  }
  Place<T, Sum> begin[kMaxOperands];
  for (std::size_t o = 0; o < inputs.size(); ++o) begin[o].element = inputs[o].as<T>();
  for (const OwnSums& sums : sums_) begin[sums.operand].sum = all_sums + sums.first;
  context.threads.parallel_for(out.count(), [&](std::int64_t task, int) {
    Place<T, Sum> at[kMaxOperands];
    std::copy_n(begin, inputs.size(), at);
    std::int64_t rest = task;
    for (int a = equation_.result_rank - 1; a >= 0; --a) {
      const EinsumLabel& label = equation_.labels[static_cast<std::size_t>(a)];
      for (std::size_t o = 0; o < inputs.size(); ++o) at[o].move(rest % label.size * label.strides[o]);
      rest /= label.size;
    }
    const auto first = static_cast<std::size_t>(equation_.result_rank);
    y[task] = convert<T>(sum_over<T, Sum>(equation_, first, {at, inputs.size()}));
  });
}

void PlainEinsum::run(const RunContext& context, std::span<const ConstTensorView> inputs, const TensorView& out) const {
  visit_type(inputs[0].type, [&](auto kind) {
    using T = decltype(kind);
    if constexpr (!std::is_same_v<T, bool>) run_as<T>(context, inputs, out);
  });
}

}  // namespace headway
