// See drive_file.h.
#include "tests/fuzz/drive_file.h"

#include <exception>

#include "headway/onnx.h"
#include "headway/safetensors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_rule.h"
#include "tools/model/npy.h"

namespace headway::fuzz {
namespace {

void read_to_the_end(const ConstTensorView& view) {
  const std::size_t bytes = tensor_bytes(view.type, view.dims);
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<unsigned>(view.data[i]);
  volatile unsigned kept = sum;  // so that the reads are not left out
  static_cast<void>(kept);
}

void read(FileKind kind, const std::string& path) {
  switch (kind) {
    case FileKind::kSafetensors: {
      const SafetensorsFile file = SafetensorsFile::open(path);
      for (const std::string& name : file.names()) read_to_the_end(file.tensor(name));
      break;
    }
    case FileKind::kNpy: {
      const Tensor tensor = tools::read_npy(path);
      read_to_the_end(tensor.view());
      break;
    }
    case FileKind::kOnnxTensor: {
      const OnnxTensor tensor = read_onnx_tensor(path);
      read_to_the_end(tensor.tensor.view());
      break;
    }
  }
}

}  // namespace

FileKind kind_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return FileKind::kSafetensors;
  return path.ends_with(".npy") ? FileKind::kNpy : FileKind::kOnnxTensor;
}

std::string drive_file(FileKind kind, const std::string& bytes, bool* refused) {
  const MemoryFile file(bytes);
  try {
    read(kind, file.path());
  } catch (const Error& error) {
    *refused = true;
    return broken_message_rule(error);
  } catch (const std::exception& other) {
    return std::string("exception that is no Error: ") + other.what();
  }
  return {};
}

}  // namespace headway::fuzz
