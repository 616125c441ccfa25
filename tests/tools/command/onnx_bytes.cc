// Field numbers are those of onnx.proto. See onnx_bytes.h.
#include "tests/tools/command/onnx_bytes.h"

namespace headway::onnx_bytes {
namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string value_info(const std::string& name, std::int64_t type, const Strings& dims) {
  std::string shape;
  for (const std::string& dim : dims) {
    const bool size = dim.find_first_not_of("0123456789") == std::string::npos;
    shape += field(1, size ? field(1, std::int64_t{std::stoll(dim)}) : field(2, dim));
  }
  const std::string tensor = field(1, type) + field(2, shape);
  return field(1, name) + field(2, field(1, tensor));
}

std::string fields(unsigned number, const Strings& texts) {
  std::string out;
  for (const std::string& text : texts) out += field(number, text);
  return out;
}

}  // namespace

std::string field(unsigned number, const std::string& bytes) {
  return varint(std::uint64_t{number} << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string field(unsigned number, std::int64_t value) {
  return varint(std::uint64_t{number} << 3) + varint(static_cast<std::uint64_t>(value));
}

std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string ints;
  for (const std::int64_t value : values) ints += field(8, value);
  constexpr std::int64_t kInts = 7;
  return field(5, field(1, name) + ints + field(20, kInts));
}

std::string attribute(const std::string& name, std::int64_t value) {
  constexpr std::int64_t kInt = 2;
  return field(5, field(1, name) + field(3, value) + field(20, kInt));
}

std::string node(const std::string& op, const Strings& inputs, const Strings& outputs, const std::string& name,
                 const std::string& attributes) {
  return field(1, fields(1, inputs) + fields(2, outputs) + field(3, name) + field(4, op) + attributes);
}

std::string initializer(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::vector<float>& values) {
  std::string tensor;
  for (const std::int64_t dim : dims) tensor += field(1, dim);
  const std::string raw(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return field(5, tensor + field(2, kFloat) + field(8, name) + field(9, raw));
}

std::string input(const std::string& name, std::int64_t type, const Strings& dims) {
  return field(11, value_info(name, type, dims));
}

std::string output(const std::string& name, std::int64_t type, const Strings& dims) {
  return field(12, value_info(name, type, dims));
}

std::string model(const std::string& graph, std::int64_t opset) {
  constexpr std::int64_t kIrVersion = 8;
  return field(1, kIrVersion) + field(2, std::string("onnx_bytes")) + field(7, graph) + field(8, field(2, opset));
}

std::string add_model() {
  return model(node("Add", {"x", "bias"}, {"y"}, "add") + initializer("bias", {4}, {1, 2, 3, 4}) +
               input("x", kFloat, {"batch", "4"}) + output("y", kFloat, {"batch", "4"}));
}

namespace {

/// out = softmax(q * k^T / 2) * v; `prefix` goes before the names of nodes and values.
std::string attention_nodes(const std::string& q, const std::string& k, const std::string& out,
                            const std::string& prefix) {
  const auto own = [&](const std::string& name) { return prefix + name; };
  return node("Transpose", {k}, {own("kt")}, own("transpose"), attribute("perm", {0, 1, 3, 2})) +
         node("MatMul", {q, own("kt")}, {own("scores")}, own("scores")) +
         node("Mul", {own("scores"), "half"}, {own("scaled")}, own("scale")) +
         node("Softmax", {own("scaled")}, {own("probs")}, own("softmax"), attribute("axis", -1)) +
         node("MatMul", {own("probs"), "v"}, {out}, own("context"));
}

const std::string& attention_inputs() {
  static const Strings dims = {"1", "2", "S", "4"};
  static const std::string inputs =
      initializer("half", {}, {0.5f}) + input("q", kFloat, dims) + input("k", kFloat, dims) + input("v", kFloat, dims);
  return inputs;
}

}  // namespace

std::string attention_model() {
  return model(attention_nodes("q", "k", "out", "") + attention_inputs() + output("out", kFloat, {"1", "2", "S", "4"}));
}

std::string two_attentions_model() {
  return model(attention_nodes("q", "k", "a", "first/") + attention_nodes("k", "q", "b", "second/") +
               node("Add", {"a", "b"}, {"both"}, "add") + attention_inputs() +
               output("both", kFloat, {"1", "2", "S", "4"}));
}

}  // namespace headway::onnx_bytes
