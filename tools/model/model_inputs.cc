// See model_inputs.h.
#include "tools/model/model_inputs.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/machine_memory.h"
#include "runtime/base/printable.h"
#include "tools/model/model.h"
#include "tools/model/npy.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

std::pair<std::string, std::string> split_option(const std::string& text, const char* option) {
  const std::size_t at = text.rfind('=');
  require(at != std::string::npos && at > 0 && at + 1 < text.size(), option, " is '", text,
          "', expected NAME=… for one input");
  return {text.substr(0, at), text.substr(at + 1)};
}

const GraphInput* find_input(const Graph& graph, const std::string& name) {
  for (const GraphInput& input : graph.inputs()) {
    if (graph.value_name(input.value) == name) return &input;
  }
  return nullptr;
}

void require_input(const Graph& graph, const std::string& name, const std::string& what) {
  if (find_input(graph, name) != nullptr) return;
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs()) names.push_back(printable(graph.value_name(input.value)));
  fail(ErrorCode::kInvalidArgument, printable(what), " names the input ", quoted(name), ", expected one of ",
       listed(names));
}

std::map<std::string, Dims> parse_shapes(const Graph& graph, const std::vector<std::string>& shapes) {
  std::map<std::string, Dims> parsed;
  for (const std::string& shape : shapes) {
    const auto [name, list] = split_option(shape, "--shape");
    require_input(graph, name, "--shape");
    Dims dims;
    for (const std::string& size : CLI::detail::split(list, ',')) {
      const bool number =
          !size.empty() && size.size() <= 12 && size.find_first_not_of("0123456789") == std::string::npos;
      require(number, "--shape ", name, " holds '", size, "', expected sizes such as 2,128");
      dims.push_back(std::stoll(size));
    }
    parsed[name] = dims;
  }
  return parsed;
}

/// Sizes of the names among the dims, as far as given tensors show them.
class SymbolSizes {
 public:
  void learn(const GraphInput& input, const Dims& dims) {
    for (int axis = 0; axis < std::min<int>(dims.rank(), static_cast<int>(input.dims.size())); ++axis) {
      const auto* symbol = std::get_if<std::string>(&input.dims[static_cast<std::size_t>(axis)]);
      if (symbol != nullptr) sizes_.emplace(*symbol, dims[axis]);
    }
  }
  /// A name that nobody has given a size is 1 for a batch, else 16.
  std::int64_t size(const SymbolicDim& dim) const {
    if (const auto* fixed = std::get_if<std::int64_t>(&dim)) return *fixed;
    const auto& symbol = std::get<std::string>(dim);
    const auto found = sizes_.find(symbol);
    if (found != sizes_.end()) return found->second;
    return symbol.find("batch") != std::string::npos ? 1 : 16;
  }

 private:
  std::map<std::string, std::int64_t> sizes_;
};

Dims dims_of(const GraphInput& input, const SymbolSizes& sizes) {
  Dims dims;
  for (const SymbolicDim& dim : input.dims) dims.push_back(sizes.size(dim));
  return dims;
}

/// How many rows the smallest table has that the value picks rows of, directly or under other dims; 0 for none.
std::int64_t table_rows(const Graph& graph, ValueId value) {
  static const std::set<std::string> kPassing = {"Cast",    "Reshape",  "Squeeze", "Unsqueeze",
                                                 "Flatten", "Identity", "Expand"};
  std::set<ValueId> same = {value};
  std::int64_t rows = 0;
  for (const Node& node : graph.nodes()) {
    if (kPassing.count(node.op) && !node.inputs.empty() && same.count(node.inputs[0])) same.insert(node.outputs[0]);
    if (node.op != "Gather" || node.inputs.size() < 2 || !same.count(node.inputs[1])) continue;
    const Tensor* table = node.inputs[0] == kNoValue ? nullptr : graph.constant(node.inputs[0]);
    if (table == nullptr || table->dims().rank() == 0) continue;
    const std::int64_t axis = node.attributes.integer("axis", 0);
    const int rank = table->dims().rank();
    if (axis < -rank || axis >= rank) continue;  // the operator says so
    const std::int64_t size = table->dims()[static_cast<int>(axis < 0 ? axis + rank : axis)];
    rows = rows == 0 ? size : std::min(rows, size);
  }
  return rows;
}

template <class T>
void fill_integers(std::int64_t limit, std::mt19937_64* random, Tensor* tensor) {
  T* out = tensor->data<T>();
  for (std::int64_t i = 0; i < tensor->count(); ++i) {
    out[i] = static_cast<T>((*random)() % static_cast<std::uint64_t>(limit));
  }
}

/// Fills with what an input of that name and type is likely to hold; returns what it did.
std::string fill(const Graph& graph, const GraphInput& input, Tensor* tensor) {
  std::mt19937_64 random(std::hash<std::string>()(graph.value_name(input.value)));
  const bool mask = graph.value_name(input.value).find("mask") != std::string::npos;
  const std::int64_t rows = table_rows(graph, input.value);
  const std::int64_t limit = rows > 0 ? std::min<std::int64_t>(rows, 127) : 2;
  const auto ones = [&](auto one) { std::fill_n(tensor->data<decltype(one)>(), tensor->count(), one); };
  switch (tensor->type()) {
    case DataType::kBool:
      ones(true);
      return "all true";
    case DataType::kI64:
      if (mask) return ones(std::int64_t{1}), "all 1";
      fill_integers<std::int64_t>(limit, &random, tensor);
      return fmt::format("random, 0 to {}", limit - 1);
    case DataType::kI32:
      if (mask) return ones(std::int32_t{1}), "all 1";
      fill_integers<std::int32_t>(limit, &random, tensor);
      return fmt::format("random, 0 to {}", limit - 1);
    default:
      break;
  }
  Tensor values(DataType::kF32, tensor->dims());
  std::uniform_real_distribution<float> uniform(-1, 1);
  // A float mask adds, so 0 shows everything.
  for (std::int64_t i = 0; i < values.count(); ++i) values.data<float>()[i] = mask ? 0 : uniform(random);
  if (tensor->type() != DataType::kF32) {
    fail(ErrorCode::kUnsupported, "input '", graph.value_name(input.value), "' is ", type_name(tensor->type()),
         ": random values are f32, i32, i64 or bool; give --inputs");
  }
  copy_elements(std::as_const(values).view(), tensor->view());
  return mask ? "all 0" : "random, -1 to 1";
}

void check_memory(const std::string& name, std::size_t bytes, std::optional<std::size_t> limit) {
  const std::size_t most = limit ? *limit : default_memory_limit_bytes();
  if (bytes <= most) return;
  fail(ErrorCode::kOutOfMemory, "input '", name, "' needs ", bytes, " bytes, the memory limit is ", most, " bytes");
}

}  // namespace

void add_model_input_options(CLI::App* command, ModelInputOptions* options, bool shapes_only) {
  if (!shapes_only) {
    command->add_option("--inputs", options->files,
                        "Tensors named as the model's inputs (F.safetensors), or one input (NAME=F.npy)");
  }
  command->add_option("--shape", options->shapes,
                      "NAME=2,128 for an input; sizes that are left open are 1 for a batch, else 16");
}

std::vector<TensorInfo> model_input_infos(const Graph& graph, const std::vector<std::string>& shapes) {
  const std::map<std::string, Dims> given = parse_shapes(graph, shapes);
  SymbolSizes sizes;
  for (const auto& [name, dims] : given) sizes.learn(*find_input(graph, name), dims);
  std::vector<TensorInfo> infos;
  for (const GraphInput& input : graph.inputs()) {
    const auto shape = given.find(graph.value_name(input.value));
    infos.push_back({input.type, shape == given.end() ? dims_of(input, sizes) : shape->second, true});
  }
  return infos;
}

ModelInputs::ModelInputs(const Graph& graph, const ModelInputOptions& options) {
  std::map<std::string, std::pair<ConstTensorView, std::string>> given;  // view and where it is from
  for (const std::string& path : options.files) {
    if (!path.ends_with(".npy")) {
      const SafetensorsFile& file = files_.emplace_back(SafetensorsFile::open(path));
      for (const std::string& name : file.names()) {
        require_input(graph, name, path);
        given[name] = {file.tensor(name), path};
      }
      continue;
    }
    const auto [name, npy] = split_option(path, "--inputs");
    require_input(graph, name, "--inputs");
    given[name] = {std::as_const(tensors_.emplace_back(read_npy(npy))).view(), npy};
  }
  const std::map<std::string, Dims> shapes = parse_shapes(graph, options.shapes);
  SymbolSizes sizes;
  for (auto& [name, tensor] : given) {
    const GraphInput& input = *find_input(graph, name);
    // Files often hold a scalar as a list of one.
    if (input.dims.empty() && tensor.first.dims == Dims{1}) tensor.first = tensor.first.reshaped({});
    sizes.learn(input, tensor.first.dims);
  }
  for (const auto& [name, dims] : shapes) sizes.learn(*find_input(graph, name), dims);
  for (const GraphInput& input : graph.inputs()) {
    const std::string& input_name = graph.value_name(input.value);
    std::string source;
    if (const auto found = given.find(input_name); found != given.end()) {
      views_.push_back(found->second.first);
      source = found->second.second;
    } else {
      const auto shape = shapes.find(input_name);
      const Dims dims = shape == shapes.end() ? dims_of(input, sizes) : shape->second;
      check_memory(input_name, tensor_bytes(input.type, dims), options.memory_limit_bytes);
      Tensor& tensor = tensors_.emplace_back(input.type, dims);
      source = fill(graph, input, &tensor);
      views_.push_back(std::as_const(tensor).view());
    }
    lines_.push_back(fmt::format("{} {} {} {}", printable(input_name), headway::type_name(views_.back().type),
                                 text(views_.back().dims), source));
  }
}

}  // namespace headway::tools
