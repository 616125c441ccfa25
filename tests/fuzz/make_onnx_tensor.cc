// TensorProto files: types, dims and the places where data may lie.
#include <limits>

#include <onnx/onnx_pb.h>
#include "tests/fuzz/make_file_parts.h"

namespace headway::fuzz {
namespace {

constexpr std::int64_t kDims[] = {-1,
                                  0,
                                  1,
                                  5,
                                  std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max(),
                                  std::int64_t{1} << 31,
                                  std::int64_t{1} << 62};

struct ProtoType {
  int type;
  std::int64_t bytes;
};
constexpr ProtoType kProtoTypes[] = {
    {onnx::TensorProto::FLOAT, 4}, {onnx::TensorProto::DOUBLE, 8},  {onnx::TensorProto::INT64, 8},
    {onnx::TensorProto::INT32, 4}, {onnx::TensorProto::INT8, 1},    {onnx::TensorProto::UINT8, 1},
    {onnx::TensorProto::BOOL, 1},  {onnx::TensorProto::FLOAT16, 2}, {onnx::TensorProto::BFLOAT16, 2}};

void break_proto(Dice* dice, onnx::TensorProto* proto) {
  switch (dice->below(11)) {
    case 0:
      proto->add_dims(dice->pick(kDims));
      break;
    case 1:
      if (proto->dims_size() > 0) proto->set_dims(0, dice->pick(kDims));
      break;
    case 2:
      proto->set_data_type(static_cast<int>(dice->between(-1, 30)));
      break;
    case 3:
      proto->mutable_raw_data()->resize(dice->below(proto->raw_data().size() + 9));
      break;
    case 4:
      for (std::int64_t left = dice->between(1, 4); left > 0; --left) {
        proto->add_float_data(1.5f);
        proto->add_int32_data(-70000);
        proto->add_int64_data(1);
      }
      break;
    case 5:
      proto->clear_raw_data();
      break;
    case 6:
      proto->set_data_location(onnx::TensorProto::EXTERNAL);
      break;
    case 7: {
      auto* entry = proto->add_external_data();
      entry->set_key(dice->pick({"location", "offset", "length", "checksum", ""}));
      entry->set_value(dice->pick({"/etc/passwd", "..", "0", "-1", "18446744073709551616", "", "a/../../b"}));
      break;
    }
    case 8:
      proto->mutable_segment()->set_begin(dice->pick(kDims));
      break;
    case 9:
      proto->set_name(dice->pick(kNames));
      proto->add_string_data("text");
      break;
    default:
      for (int i = 0; i < 20; ++i) proto->add_dims(1);
  }
}

}  // namespace

MadeFile make_onnx_tensor(Dice* dice) {
  MadeFile made;
  onnx::TensorProto proto;
  const ProtoType& type = dice->pick(kProtoTypes);
  const std::vector<std::int64_t> dims = random_dims(dice);
  proto.set_data_type(type.type);
  proto.set_name("t");
  for (const std::int64_t dim : dims) proto.add_dims(dim);
  std::string bytes = random_bytes(dice, static_cast<std::size_t>(count_of(dims) * type.bytes));
  if (type.type == onnx::TensorProto::BOOL) {
    for (char& byte : bytes) byte = static_cast<char>(byte & 1);
  }
  if (type.type == onnx::TensorProto::INT32 && dice->one_in(2)) {  // as a list
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      std::int32_t value = 0;
      std::memcpy(&value, bytes.data() + i, sizeof(value));
      proto.add_int32_data(value);
    }
  } else {
    proto.set_raw_data(bytes);
  }
  made.tensors[""] = bytes;
  made.right = dice->one_in(3);
  for (std::int64_t left = made.right ? 0 : dice->between(1, 3); left > 0; --left) break_proto(dice, &proto);
  made.bytes = proto.SerializeAsString();
  return made;
}

}  // namespace headway::fuzz
