// Attributes and the registry.
#include "headway/operator.h"

#include <gtest/gtest.h>

#include "tests/runtime/error_of.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

class Named : public Operator {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::vector<ValueInfo> infer(const InferContext&) const override { return {}; }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override { return nullptr; }

 private:
  std::string name_;
};

TEST(Attributes, LookUps) {
  const Attributes a{{"i", std::int64_t{3}}, {"f", 2.5f}, {"s", "text"}, {"l", std::vector<std::int64_t>{1, 2}}};
  EXPECT_EQ(a.integer("i"), 3);
  EXPECT_EQ(a.integer("i", 9), 3);
  EXPECT_EQ(a.integer("j", 9), 9);
  EXPECT_EQ(a.real("f", 1), 2.5f);
  EXPECT_EQ(a.real("g", 1), 1.0f);
  EXPECT_EQ(a.text("s", ""), "text");
  EXPECT_EQ(a.text("t", "other"), "other");
  EXPECT_EQ(a.integers("l"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(a.integers("m", {4}), std::vector<std::int64_t>{4});
}

TEST(Attributes, MissingAndWrongTypesAreNamed) {
  const Attributes a{{"heads", 2.0f}, {"scale", std::int64_t{1}}};
  expect_contains(error_of([&] { a.integer("axis"); }), "attribute 'axis' is missing");
  const std::string error = error_of([&] { a.integer("heads", 4); });
  expect_contains(error, "attribute 'heads' is a float, expected an integer");
  expect_contains(error_of([&] { a.real("scale", 1); }), "is an integer, expected a float");
  expect_contains(error_of([&] { a.text("scale", ""); }), "expected a string");
  expect_contains(error_of([&] { a.integers("scale"); }), "expected a list of integers");
}

TEST(Registry, FindsByName) {
  Registry registry;
  registry.add(std::make_unique<Named>("B"));
  registry.add(std::make_unique<Named>("A"));
  EXPECT_EQ(registry.find("A")->name(), "A");
  EXPECT_EQ(registry.find("C"), nullptr);
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"A", "B"}));
}

TEST(Registry, Refuses) {
  Registry registry;
  registry.add(std::make_unique<Named>("A"));
  expect_contains(error_of([&] { registry.add(std::make_unique<Named>("A")); }), "operator 'A' is registered already");
  error_of([&] { registry.add(std::make_unique<Named>("")); });
  error_of([&] { registry.add(nullptr); });
  EXPECT_EQ(registry.names().size(), 1u);
}

}  // namespace
}  // namespace headway
