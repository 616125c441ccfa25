// Files to models: maps, splits, parses, builds. See headway/onnx.h.
#include <google/protobuf/arena.h>

#include <limits>

#include "headway/onnx.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/onnx/graph_builder.h"

namespace headway {
namespace {

using importer::Bytes;

std::int64_t opset_of(const onnx::ModelProto& model) {
  std::int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") opset = import.version();
  }
  require(opset != 0, "the model imports no opset of ai.onnx");
  if (opset < kOldestOpset || opset > kNewestOpset) {
    fail(ErrorCode::kUnsupported, "the model is of opset ", opset, ", supported are ", kOldestOpset, " to ",
         kNewestOpset);
  }
  return opset;
}

int parsable_size(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    fail(ErrorCode::kUnsupported, "the model is ", bytes, " bytes large without its weights, more than protobuf takes");
  }
  return static_cast<int>(bytes);
}

OnnxModel read_model(Bytes bytes, const std::shared_ptr<const MappedFile>& file, const std::string& path,
                     const ImportLimits& limits) {
  require(!bytes.empty(), "not an ONNX file: it is empty");
  const importer::SplitModel split = importer::split_model(bytes);
  // In an arena: protobuf loses the message that it is making when memory runs out, unless that belongs to one.
  google::protobuf::Arena arena;
  onnx::ModelProto& proto = *google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  require(proto.ParseFromArray(split.skeleton.data(), parsable_size(split.skeleton.size())),
          "the file is truncated or no ONNX file: protobuf cannot read it");
  require(proto.has_graph(), "not an ONNX model: it has no graph");
  require(proto.graph().initializer_size() == static_cast<int>(split.raw_data.size()), "not an ONNX file: it has ",
          split.raw_data.size(), " initializers, protobuf finds ", proto.graph().initializer_size());
  OnnxModel model;
  model.opset = opset_of(proto);
  model.ir_version = proto.ir_version();
  model.producer = proto.producer_name() + (proto.producer_version().empty() ? "" : " " + proto.producer_version());
  const importer::GraphBuilder::Source source{proto, split, file, path, limits};
  importer::GraphBuilder builder(source);
  model.graph = builder.build();
  model.weight_bytes = builder.weight_bytes();
  model.mapped_bytes = builder.mapped_bytes();
  return model;
}

/// Runs `work`; an Error that leaves it gets the path in front and becomes one line.
template <class Work>
auto name_file(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), one_line(printable(path) + ": " + error.what()));
  }
}

}  // namespace

OnnxModel read_onnx(const std::string& path, const ImportLimits& limits) try {
  const auto file = std::make_shared<const MappedFile>(path);
  return name_file(path, [&] {
    OnnxModel model = read_model(file->bytes(), file, path, limits);
    // What was copied need not stay in memory twice; what is shared comes back from the page cache when it is used.
    file->advise_unneeded(file->bytes());
    return model;
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

OnnxModel parse_onnx(std::span<const std::byte> bytes, const ImportLimits& limits) {
  return translate_bad_alloc([&] { return read_model(bytes, nullptr, "", limits); });
}

OnnxTensor read_onnx_tensor(const std::string& path) try {
  const MappedFile file(path);
  return name_file(path, [&] {
    google::protobuf::Arena arena;
    onnx::TensorProto& proto = *google::protobuf::Arena::CreateMessage<onnx::TensorProto>(&arena);
    require(proto.ParseFromArray(file.bytes().data(), parsable_size(file.bytes().size())),
            "the file is truncated or no tensor: protobuf cannot read it");
    require(proto.dims_size() > 0 || proto.has_data_type(), "not a tensor: it has neither dims nor a type");
    return OnnxTensor{proto.name(), importer::read_tensor({proto})};
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
