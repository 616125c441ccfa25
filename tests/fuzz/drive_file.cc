// See drive_file.h.
#include "tests/fuzz/drive_file.h"

#include <exception>
#include <map>

#include "headway/onnx.h"
#include "headway/safetensors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_rule.h"
#include "tools/model/npy.h"

namespace headway::fuzz {
namespace {

using Contents = std::map<std::string, std::string>;

std::string bytes_of(const ConstTensorView& view) {
  return {reinterpret_cast<const char*>(view.data), tensor_bytes(view.type, view.dims)};
}

/// Reads every tensor to its last byte.
Contents read(FileKind kind, const std::string& path) {
  Contents contents;
  switch (kind) {
    case FileKind::kSafetensors: {
      const SafetensorsFile file = SafetensorsFile::open(path);
      for (const std::string& name : file.names()) contents[name] = bytes_of(file.tensor(name));
      break;
    }
    case FileKind::kNpy: {
      const Tensor tensor = tools::read_npy(path);
      contents[""] = bytes_of(tensor.view());
      break;
    }
    case FileKind::kOnnxTensor: {
      const OnnxTensor tensor = read_onnx_tensor(path);
      contents[""] = bytes_of(tensor.tensor.view());
      break;
    }
  }
  return contents;
}

}  // namespace

FileKind kind_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return FileKind::kSafetensors;
  return path.ends_with(".npy") ? FileKind::kNpy : FileKind::kOnnxTensor;
}

std::string drive_file(FileKind kind, const std::string& bytes, bool* refused, const Contents* right) {
  const MemoryFile file(bytes);
  try {
    const Contents contents = read(kind, file.path());
    if (right != nullptr && contents != *right) return "a right file is read as something else";
  } catch (const Error& error) {
    *refused = true;
    if (right != nullptr) return std::string("a right file is refused: ") + error.what();
    return broken_message_rule(error);
  } catch (const std::exception& other) {
    return std::string("exception that is no Error: ") + other.what();
  }
  return {};
}

}  // namespace headway::fuzz
