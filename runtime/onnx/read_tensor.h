// One serialised tensor as a tensor: type, dims and data that agree. Knows nothing of graphs.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>

#include "headway/tensor.h"
#include "runtime/onnx/external_data.h"
#include "runtime/onnx/wire_format.h"

namespace headway::importer {

struct TensorSource {
  const onnx::TensorProto& proto;
  Bytes raw_data = {};  ///< taken out of `proto` before it was parsed; empty: none was
  /// What `raw_data` is part of, to be shared; null: `raw_data` is to be copied.
  std::shared_ptr<const MappedFile> file = nullptr;
  ExternalFiles* external = nullptr;  ///< null: external data is refused
};

/// Leaves large data in the file, copies small. Nothing is allocated before the data has
/// turned out to be as large as the dims ask for.
Tensor read_tensor(const TensorSource& source);

}  // namespace headway::importer
