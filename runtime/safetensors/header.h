// What a safetensors header says, checked against the size of the data that follows it. Reads no data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headway/tensor.h"

namespace headway {

/// One tensor: bytes [begin, end) of the data section.
struct SafetensorsEntry {
  std::string name;
  DataType type = DataType::kF32;  ///< of no meaning where `refusal` says something
  Dims dims;
  std::string refusal;  ///< why this library cannot show the tensor: a type or a rank that it has not; else empty
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< sorted by name, names distinct
  std::map<std::string, std::string> metadata;
};

/// Parses `text` and checks that the tensors tile [0, data_bytes) exactly. A tensor that this library cannot show stops
/// nobody who does not ask for it. Throws kInvalidArgument starting with the
/// file's name and naming the tensor and both numbers.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes, const std::string& file);

/// "F32", …: the format's own name of a type.
const char* safetensors_type_name(DataType type);

}  // namespace headway
