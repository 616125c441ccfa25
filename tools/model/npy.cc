// See npy.h. The format: magic, version, header length, a Python dict of descr, fortran_order and shape, the elements.
#include "tools/model/npy.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string_view>

#include "runtime/base/check.h"

namespace headway::tools {
namespace {

const std::map<std::string, DataType> kTypes = {
    {"<f4", DataType::kF32}, {"<f8", DataType::kF64}, {"<f2", DataType::kF16}, {"|i1", DataType::kI8},
    {"|u1", DataType::kU8},  {"<i4", DataType::kI32}, {"<i8", DataType::kI64}, {"|b1", DataType::kBool}};

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kIo, path, ": cannot open");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string field(const std::string& header, const std::string& pattern, const std::string& path) {
  std::smatch match;
  require(std::regex_search(header, match, std::regex(pattern)), path, ": not an .npy file: no ", pattern);
  return match[1];
}

Dims shape_of(const std::string& list, const std::string& path) {
  Dims dims;
  const std::regex number("[^, ]+");
  for (auto it = std::sregex_iterator(list.begin(), list.end(), number); it != std::sregex_iterator(); ++it) {
    const std::string text = it->str();
    require(text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos, path, ": its shape holds '",
            text, "', expected a size");
    dims.push_back(std::stoll(text));
  }
  return dims;
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const std::string file = read_all(path);
  constexpr std::string_view kMagic("\x93NUMPY", 6);
  require(file.size() >= 12 && file.compare(0, 6, kMagic) == 0, path, ": not an .npy file");
  const bool wide = file[6] != 1;  // from version 2 on the length has four bytes
  const std::size_t begin = wide ? 12 : 10;
  std::size_t length = 0;
  std::memcpy(&length, file.data() + 8, wide ? 4 : 2);
  require(length <= file.size() - begin, path, ": its header has ", length, " bytes, the file ", file.size());
  const std::string header = file.substr(begin, length);
  const std::string descr = field(header, R"('descr' *: *'([^']*)')", path);
  const std::string order = field(header, R"('fortran_order' *: *(True|False))", path);
  const std::string shape = field(header, R"('shape' *: *\(([^)]*)\))", path);
  const auto type = kTypes.find(descr);
  if (type == kTypes.end()) fail(ErrorCode::kUnsupported, path, ": elements of type ", descr, " are not supported");
  const Dims dims = shape_of(shape, path);
  if (order == "True" && dims.rank() > 1) fail(ErrorCode::kUnsupported, path, ": is in Fortran order");
  const std::size_t bytes = tensor_bytes(type->second, dims);
  require(file.size() - begin - length == bytes, path, ": has ", file.size() - begin - length,
          " bytes of elements, expected ", bytes);
  Tensor tensor(type->second, dims);
  if (bytes > 0) std::memcpy(tensor.view().data, file.data() + begin + length, bytes);
  return tensor;
}

}  // namespace headway::tools
