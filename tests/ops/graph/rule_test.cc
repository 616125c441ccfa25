// The rule of every operator: accepts a sound node, answers or refuses whatever else it is given, and says of sizes
// that are not known what it says of the same sizes as numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "headway/error.h"
#include "headway/register_ops.h"
#include "tests/ops/graph/rule_cases.h"

namespace headway::testing {
namespace {

using Random = std::mt19937_64;

int below(Random* random, int n) { return static_cast<int>((*random)() % static_cast<std::uint64_t>(n)); }

std::int64_t odd_number(Random* random) {
  constexpr std::int64_t kOdd[] = {std::numeric_limits<std::int64_t>::min(),
                                   -(std::int64_t{1} << 31),
                                   -3,
                                   -1,
                                   0,
                                   1,
                                   2,
                                   7,
                                   64,
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 61,
                                   std::numeric_limits<std::int64_t>::max()};
  return kOdd[below(random, static_cast<int>(std::size(kOdd)))];
}

Attribute odd_attribute(Random* random) {
  switch (below(random, 5)) {
    case 0:
      return odd_number(random);
    case 1:
      return -2.5f;
    case 2:
      return std::string("...a,->zz");
    case 3:
      return std::vector<float>{1, 2};
    default: {
      std::vector<std::int64_t> list;
      for (int i = below(random, 6); i > 0; --i) list.push_back(odd_number(random));
      return list;
    }
  }
}

/// Attributes that operators read, so that a random one meets its reader.
constexpr const char* kAttributes[] = {"axis",
                                       "axes",
                                       "perm",
                                       "to",
                                       "keepdims",
                                       "num_heads",
                                       "q_num_heads",
                                       "kv_num_heads",
                                       "equation",
                                       "group",
                                       "pads",
                                       "strides",
                                       "dilations",
                                       "kernel_shape",
                                       "auto_pad",
                                       "starts",
                                       "ends",
                                       "steps",
                                       "split",
                                       "num_outputs",
                                       "dims",
                                       "allowzero",
                                       "start",
                                       "end",
                                       "mode",
                                       "batch_dims",
                                       "stash_type",
                                       "approximate",
                                       "fmod",
                                       "upper",
                                       "transA",
                                       "alpha",
                                       "scale",
                                       "softcap",
                                       "causal",
                                       "scores",
                                       "semantics",
                                       "query_axes",
                                       "out_axes",
                                       "window_left",
                                       "is_causal",
                                       "left_window_size",
                                       "softmax_precision",
                                       "qk_matmul_output_mode",
                                       "qkv_hidden_sizes",
                                       "unidirectional",
                                       "do_rotary",
                                       "rotary_embedding_dim",
                                       "head_dim",
                                       "num_kv_heads",
                                       "weights",
                                       "mask_polarity",
                                       "activation"};

/// A case with numbers, and the same with some sizes unknown.
class Asked {
 public:
  Asked(const RuleCase& given, Random* random) : case_(given) {
    for (const RuleInput& input : given.inputs) add(input, random);
  }

  /// Empty, with the refusal in `error`, where the rule refuses.
  std::vector<ValueInfo> ask(const Operator& op, bool with_unknowns, std::string* error) {
    const std::vector<ValueInfo>& inputs = with_unknowns ? unknown_ : numbers_;
    const std::vector<ConstTensorView>& constants = with_unknowns ? some_constants_ : constants_;
    try {
      return op.infer({case_.attributes, inputs, constants, case_.outputs, with_unknowns ? &unknowns_ : nullptr, 1});
    } catch (const Error& refusal) {
      *error = refusal.what();
      return {};
    }
  }

  /// The number of an expression of sizes that were made unknown; nullopt for another.
  std::optional<std::int64_t> number_of(const Dim& dim) const {
    std::int64_t number = dim.factor;
    for (const int unknown : dim.unknowns) {
      const auto found = sizes_.find(unknown);
      if (found == sizes_.end()) return std::nullopt;
      number *= found->second;
    }
    return number;
  }

 private:
  /// Equal sizes get equal names: that is what a name promises.
  Dim maybe_unknown(std::int64_t size, Random* random) {
    if (size < 1 || size > 1000 || below(random, 2) == 0) return size;
    const Dim named = unknowns_.named("size " + std::to_string(size), true);
    sizes_[named.unknowns[0]] = size;
    return named;
  }

  void add(const RuleInput& input, Random* random) {
    ValueInfo numbers{.type = input.type, .dims = {}, .elements = {}, .present = input.present};
    ConstTensorView view;
    numbers.dims = DimList(input.dims.begin(), input.dims.end());
    ValueInfo unknown = numbers;
    const bool list = !input.numbers.empty();
    if (input.present && input.constant && input.dims.size() <= kMaxRank) {
      const Dims dims{std::span<const std::int64_t>(input.dims)};
      tensors_.push_back(std::make_unique<Tensor>(input.type, dims));
      if (list && input.type == DataType::kI64) {
        std::copy_n(input.numbers.begin(), tensors_.back()->count(), tensors_.back()->data<std::int64_t>());
      }
      view = tensors_.back()->view();
    }
    ConstTensorView some = view;
    if (list && view && input.type == DataType::kI64) {
      unknown.elements = DimList(input.numbers.begin(), input.numbers.begin() + tensors_.back()->count());
      if (below(random, 2) == 0) {
        some = {};
        for (Dim& element : *unknown.elements) element = maybe_unknown(element.factor, random);
      }
    } else if (!view) {
      for (Dim& dim : *unknown.dims) dim = maybe_unknown(dim.factor, random);
      if (below(random, 30) == 0) unknown.dims.reset();
    }
    numbers_.push_back(std::move(numbers));
    unknown_.push_back(std::move(unknown));
    constants_.push_back(view);
    some_constants_.push_back(some);
  }

  const RuleCase& case_;
  std::vector<ValueInfo> numbers_, unknown_;
  std::vector<ConstTensorView> constants_, some_constants_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  Unknowns unknowns_;
  std::map<int, std::int64_t> sizes_;
};

/// One thing made different from what the rule accepts.
RuleCase changed(RuleCase one, Random* random) {
  const auto at = [&] { return static_cast<std::size_t>(below(random, static_cast<int>(one.inputs.size()))); };
  const int kind = one.inputs.empty() ? 5 : below(random, 8);
  constexpr DataType kTypes[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16, DataType::kI8,
                                 DataType::kU8,  DataType::kI32, DataType::kI64, DataType::kBool};
  switch (kind) {
    case 0: {
      RuleInput& input = one.inputs[at()];
      const std::int64_t size = std::int64_t{below(random, 5)};
      if (!input.dims.empty() && !input.constant)
        input.dims[static_cast<std::size_t>(below(random, static_cast<int>(input.dims.size())))] = size;
      break;
    }
    case 1:
      one.inputs[at()].type = kTypes[below(random, 9)];
      break;
    case 2:
      one.inputs[at()].present = false;
      break;
    case 3:
      one.inputs.resize(static_cast<std::size_t>(below(random, static_cast<int>(one.inputs.size()) + 2)));
      break;
    case 4: {
      RuleInput& input = one.inputs[at()];
      if (!input.numbers.empty())
        input.numbers[static_cast<std::size_t>(below(random, static_cast<int>(input.numbers.size())))] =
            odd_number(random);
      break;
    }
    case 5:
    case 6:
      one.attributes.set(kAttributes[below(random, static_cast<int>(std::size(kAttributes)))], odd_attribute(random));
      break;
    default: {
      RuleInput& input = one.inputs[at()];
      if (!input.constant) input.dims.resize(static_cast<std::size_t>(below(random, 7)), 2);
      break;
    }
  }
  if (below(random, 8) == 0) one.outputs = 1 + below(random, 6);
  return below(random, 3) == 0 ? changed(std::move(one), random) : one;
}

class Rules : public ::testing::Test {
 protected:
  Rules() { register_ops(&registry_); }

  void expect_agreement(const RuleCase& one, Asked* asked) {
    const Operator& op = *registry_.find(one.op);
    std::string refusal, refusal_of_unknown;
    const std::vector<ValueInfo> numbers = asked->ask(op, false, &refusal);
    const std::vector<ValueInfo> unknown = asked->ask(op, true, &refusal_of_unknown);
    if (unknown.empty()) {
      EXPECT_TRUE(numbers.empty()) << one.op << " refuses sizes that are not known: " << refusal_of_unknown;
      return;
    }
    EXPECT_EQ(unknown.size(), static_cast<std::size_t>(one.outputs)) << one.op;
    if (numbers.empty()) return;
    ASSERT_EQ(numbers.size(), unknown.size()) << one.op;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i].type, unknown[i].type ? unknown[i].type : numbers[i].type) << one.op << " output " << i;
      expect_same(one.op + " dims", *asked, numbers[i].dims, unknown[i].dims);
      expect_same(one.op + " elements", *asked, numbers[i].elements, unknown[i].elements);
    }
    ++compared_[one.op];
  }

  static void expect_same(const std::string& what, const Asked& asked, const std::optional<DimList>& numbers,
                          const std::optional<DimList>& unknown) {
    if (!numbers || !unknown) return;
    ASSERT_EQ(numbers->size(), unknown->size()) << what;
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const std::int64_t number = (*numbers)[i].factor;
      EXPECT_EQ(number, asked.number_of((*unknown)[i]).value_or(number)) << what << ' ' << i;
    }
  }

  Registry registry_;
  std::map<std::string, int> compared_;
};

TEST_F(Rules, EveryOperatorHasACaseThatItAccepts) {
  std::set<std::string> covered;
  Random random(1);
  for (const RuleCase& one : rule_cases()) {
    ASSERT_NE(registry_.find(one.op), nullptr) << one.op;
    std::string refusal;
    Asked asked(one, &random);
    EXPECT_FALSE(asked.ask(*registry_.find(one.op), false, &refusal).empty()) << one.op << ": " << refusal;
    EXPECT_FALSE(asked.ask(*registry_.find(one.op), true, &refusal).empty()) << one.op << ": " << refusal;
    covered.insert(one.op);
  }
  const std::vector<std::string> names = registry_.names();
  EXPECT_EQ(covered, std::set<std::string>(names.begin(), names.end()));
}

TEST_F(Rules, TheTableNamesEveryOperatorOnce) {
  std::set<std::string> named;
  for (const OperatorDoc& doc : operator_table()) EXPECT_TRUE(named.insert(doc.name).second) << doc.name;
  const std::vector<std::string> names = registry_.names();
  EXPECT_EQ(named, std::set<std::string>(names.begin(), names.end()));
}

TEST_F(Rules, SayTheSameOfSizesKnownAndUnknown) {
  Random random(2);
  for (const RuleCase& one : rule_cases()) {
    for (int round = 0; round < 60; ++round) {
      Asked asked(one, &random);
      expect_agreement(one, &asked);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(compared_.size(), registry_.names().size());
}

TEST_F(Rules, AnswerOrRefuseWhateverTheyAreGiven) {
  Random random(3);
  int answered = 0;
  for (const RuleCase& one : rule_cases()) {
    for (int round = 0; round < 400; ++round) {
      const RuleCase other = changed(one, &random);
      SCOPED_TRACE(one.op + " round " + std::to_string(round));
      Asked asked(other, &random);
      expect_agreement(other, &asked);
      if (HasFailure()) return;
    }
    answered += compared_[one.op] > 0 ? 1 : 0;
  }
  EXPECT_GT(answered, 80);
}

}  // namespace
}  // namespace headway::testing
