// A reader that never looks past its bytes, and the copy of a model without its weights.
#include "runtime/onnx/wire_format.h"

#include "headway/error.h"
#include "runtime/base/check.h"

namespace headway::importer {
namespace {

constexpr std::uint32_t kModelGraph = 7;         // ModelProto.graph
constexpr std::uint32_t kGraphInitializer = 5;   // GraphProto.initializer
constexpr std::uint32_t kTensorRawData = 9;      // TensorProto.raw_data
constexpr std::size_t kWorthCuttingBytes = 256;  // less is copied as fast as it is remembered

enum class WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number;
  WireType type;
  Bytes whole;    // tag and all
  Bytes payload;  // of kLength
};

class WireReader {
 public:
  explicit WireReader(Bytes bytes) : bytes_(bytes) {}
  bool done() const { return at_ == bytes_.size(); }

  Field next() {
    const std::size_t begin = at_;
    const std::uint64_t tag = varint();
    require(tag >> 3 != 0 && tag >> 3 < (1u << 29), "not an ONNX file: field number ", tag >> 3, " at byte ", begin);
    Field field{static_cast<std::uint32_t>(tag >> 3), static_cast<WireType>(tag & 7), {}, {}};
    switch (field.type) {
      case WireType::kVarint:
        varint();
        break;
      case WireType::kFixed64:
        take(8);
        break;
      case WireType::kFixed32:
        take(4);
        break;
      case WireType::kLength:
        field.payload = take(varint());
        break;
      default:
        fail(ErrorCode::kInvalidArgument, "not an ONNX file: wire type ", tag & 7, " at byte ", begin);
    }
    field.whole = bytes_.subspan(begin, at_ - begin);
    return field;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1)[0]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail(ErrorCode::kInvalidArgument, "not an ONNX file: a number of more than 10 bytes before byte ", at_);
  }

  Bytes take(std::uint64_t count) {
    require(count <= bytes_.size() - at_, "the file is truncated or no ONNX file: ", count, " bytes expected at byte ",
            at_, " of a part of ", bytes_.size());
    const Bytes taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  Bytes bytes_;
  std::size_t at_ = 0;
};

void append(Bytes bytes, std::string* out) { out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

void append_varint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void append_message(std::uint32_t number, const std::string& message, std::string* out) {
  append_varint(std::uint64_t{number} << 3 | static_cast<std::uint32_t>(WireType::kLength), out);
  append_varint(message.size(), out);
  out->append(message);
}

bool is(const Field& field, std::uint32_t number) { return field.number == number && field.type == WireType::kLength; }

std::string split_tensor(Bytes tensor, Bytes* raw_data) {
  std::string out;
  for (WireReader reader(tensor); !reader.done();) {
    const Field field = reader.next();
    if (is(field, kTensorRawData) && field.payload.size() >= kWorthCuttingBytes) {
      *raw_data = field.payload;
    } else {
      append(field.whole, &out);
    }
  }
  return out;
}

std::string split_graph(Bytes graph, std::vector<Bytes>* raw_data) {
  std::string out;
  for (WireReader reader(graph); !reader.done();) {
    const Field field = reader.next();
    if (is(field, kGraphInitializer)) {
      raw_data->emplace_back();
      append_message(field.number, split_tensor(field.payload, &raw_data->back()), &out);
    } else {
      append(field.whole, &out);
    }
  }
  return out;
}

}  // namespace

SplitModel split_model(Bytes file) {
  SplitModel model;
  for (WireReader reader(file); !reader.done();) {
    const Field field = reader.next();
    if (is(field, kModelGraph)) {
      // More than one is legal: protobuf appends the initializers of each, and so does this.
      append_message(field.number, split_graph(field.payload, &model.raw_data), &model.skeleton);
    } else {
      append(field.whole, &model.skeleton);
    }
  }
  return model;
}

}  // namespace headway::importer
