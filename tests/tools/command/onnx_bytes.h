// ONNX files byte by byte, so that tests of the command need no protobuf: the few messages that small models take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headway::onnx_bytes {

using Strings = std::vector<std::string>;

/// One field of a message: a message or a string.
std::string field(unsigned number, const std::string& bytes);
/// One field of a message: an integer.
std::string field(unsigned number, std::int64_t value);

constexpr std::int64_t kFloat = 1, kInt64 = 7;

std::string attribute(const std::string& name, const std::vector<std::int64_t>& values);
std::string attribute(const std::string& name, std::int64_t value);
std::string node(const std::string& op, const Strings& inputs, const Strings& outputs, const std::string& name = "",
                 const std::string& attributes = "");
std::string initializer(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::vector<float>& values);
/// A dim of digits is a size, anything else a name.
std::string input(const std::string& name, std::int64_t type, const Strings& dims);
std::string output(const std::string& name, std::int64_t type, const Strings& dims);
/// The parts of a graph, joined, as a model.
std::string model(const std::string& graph, std::int64_t opset = 17);

/// y = x + bias, x [batch, 4] f32, bias 1, 2, 3, 4.
std::string add_model();
/// out = softmax(q * k^T / 2) * v, all [1, 2, S, 4] f32, of five nodes.
std::string attention_model();
/// The same twice, the second with q and k changed about: both = attention(q, k, v) + attention(k, q, v).
std::string two_attentions_model();

}  // namespace headway::onnx_bytes
