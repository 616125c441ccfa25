// See drive_manifest.h.
#include "tests/fuzz/drive_manifest.h"

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "headway/error.h"
#include "headway/safetensors.h"
#include "tests/fuzz/make_manifest.h"
#include "tests/fuzz/message_rule.h"
#include "tools/conformance/conformance.h"

namespace headway::fuzz {
namespace {

namespace fs = std::filesystem;

/// Zeros: the results of every case are known, 0 or what a bias of 0 leaves.
Tensor zeros(const Dims& dims, DataType type = DataType::kF32) {
  Tensor tensor(type, dims);
  if (tensor.count() > 0) std::memset(tensor.view().data, 0, tensor_bytes(type, dims));
  return tensor;
}

using Tensors = std::map<std::string, Tensor>;

void save(const std::string& path, const Tensors& tensors) {
  std::map<std::string, ConstTensorView> views;
  for (const auto& [name, tensor] : tensors) views.emplace(name, tensor.view());
  write_safetensors(path, views);
}

void add_layer(const std::string& prefix, Tensors* to) {
  to->emplace(prefix + "in_proj_weight", zeros({24, 8}));
  to->emplace(prefix + "in_proj_bias", zeros({24}));
  to->emplace(prefix + "out_proj.weight", zeros({8, 8}));
  to->emplace(prefix + "out_proj.bias", zeros({8}));
}

/// Every file of tensors, by its path below the folder.
std::map<std::string, Tensors> all_tensors() {
  std::map<std::string, Tensors> files;
  Tensors& cases = files["c/cases.safetensors"];
  for (const char* name : {"000.query", "000.key", "000.value", "000.output"}) cases.emplace(name, zeros({1, 2, 3, 4}));
  cases.emplace("000.attn_mask", zeros({3, 3}));
  for (const char* name : {"001.query", "001.output"}) cases.emplace(name, zeros({1, 3, 8}));
  add_layer("001.", &cases);
  add_layer("", &files["l/weights.safetensors"]);
  files["l/input.safetensors"].emplace("query", zeros({2, 3, 8}));
  files["l/input.safetensors"].emplace("key_padding_mask", zeros({2, 3}, DataType::kBool));
  files["l/expected.safetensors"].emplace("output", zeros({2, 3, 8}));
  for (const std::string folder : {"m", "e"}) {
    Tensors& inputs = files[folder + "/m.inputs.safetensors"];
    inputs.emplace("x", zeros({2, 3, 4}));
    Tensor mask(DataType::kI64, {2, 3});
    std::fill_n(mask.data<std::int64_t>(), mask.count(), 1);
    inputs.emplace("attention_mask", std::move(mask));
    files[folder + "/m.expected.safetensors"].emplace("last_hidden_state", zeros({2, 3, 4}));
  }
  files["e/m.expected.safetensors"].emplace("sentence_embedding", zeros({2, 4}));
  return files;
}

const std::map<std::string, Tensors>& tensors() {
  static const std::map<std::string, Tensors> all = all_tensors();
  return all;
}

/// last_hidden_state = x + x.
std::string model() {
  onnx::ModelProto made;
  made.set_ir_version(8);
  made.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = made.mutable_graph();
  const auto set = [](onnx::ValueInfoProto* value, const char* name) {
    value->set_name(name);
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const char* dim : {"batch", "tokens", "width"}) type->mutable_shape()->add_dim()->set_dim_param(dim);
  };
  set(graph->add_input(), "x");
  set(graph->add_output(), "last_hidden_state");
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Add");
  node->add_input("x");
  node->add_input("x");
  node->add_output("last_hidden_state");
  return made.SerializeAsString();
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  if (!out.flush()) std::abort();
}

/// Another tensor in the place of one: other dims or another type.
void break_tensors(Dice* dice, Tensors* of) {
  Tensor& one = std::next(of->begin(), static_cast<std::ptrdiff_t>(dice->below(of->size())))->second;
  Dims dims = one.dims();
  const DataType type = dice->pick({DataType::kF32, DataType::kBF16, DataType::kI64, DataType::kBool, DataType::kF64});
  switch (dice->below(4)) {
    case 0:
      dims.push_back(dice->between(0, 2));
      break;
    case 1:
      dims = {};
      break;
    case 2:
      if (dims.rank() > 0)
        dims[static_cast<int>(dice->below(static_cast<std::uint64_t>(dims.rank())))] = dice->between(0, 9);
      break;
    default:
      one = zeros(dims, type);
      return;
  }
  one = zeros(dims, one.type());
}

}  // namespace

ManifestFolders::ManifestFolders() {
  std::string pattern = fs::temp_directory_path().string() + "/headway_fuzz_XXXXXX";
  if (fs::is_directory("/dev/shm")) pattern = "/dev/shm/headway_fuzz_XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  folder_ = pattern;
  for (const ManifestPlace& place : manifest_places()) fs::create_directory(folder_ + "/" + place.folder);
  for (const char* file : {"/m/m.onnx", "/e/m.onnx"}) write(folder_ + file, model());
}

ManifestFolders::~ManifestFolders() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string ManifestFolders::drive(Dice* dice, bool* refused) {
  if (!written_) {  // anew in each process: the one before may have died with a file changed
    for (const auto& [path, of] : tensors()) save(folder_ + "/" + path, of);
    written_ = true;
  }
  const MadeManifest made = make_manifest(dice);
  const std::string folder = folder_ + "/" + made.place.folder;
  write(folder + "/" + made.place.file, made.text);
  std::string changed;  // a file of tensors
  if (!made.right && dice->one_in(6)) {
    changed = dice->pick(tensors()).first;
    Tensors of;
    for (const auto& [name, tensor] : tensors().at(changed)) {
      of.emplace(name, zeros(tensor.dims(), tensor.type()));
    }
    break_tensors(dice, &of);
    save(folder_ + "/" + changed, of);
  }
  std::string finding;
  try {
    const tools::Execution execution{Threads::serial(), {}, false};
    for (const tools::Case& one : tools::load_cases(folder).cases) {
      const tools::CaseResult result = one.run(execution);
      // Nothing has a direction in a sentence of zeros.
      if (made.right && !result.ok && std::isfinite(result.worst)) finding = one.id + ": a right case fails";
    }
  } catch (const Error& error) {
    *refused = true;
    finding = broken_message_rule(error);
    if (made.right) finding = std::string("a right manifest is refused: ") + error.what();
  } catch (const std::exception& other) {
    finding = std::string("exception that is no Error: ") + other.what();
  }
  if (!changed.empty()) save(folder_ + "/" + changed, tensors().at(changed));
  return finding;
}

}  // namespace headway::fuzz
