// Parsing and checking of the header. Nothing it says is believed before it is compared with the file's size.
#include "runtime/safetensors/header.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/json_reader.h"

namespace headway {
namespace {

struct TypeName {
  const char* text;
  DataType type;
};
constexpr TypeName kTypes[] = {
    {"F64", DataType::kF64},   {"F32", DataType::kF32}, {"F16", DataType::kF16},
    {"BF16", DataType::kBF16}, {"I64", DataType::kI64}, {"I32", DataType::kI32},
    {"I8", DataType::kI8},     {"U8", DataType::kU8},   {"BOOL", DataType::kBool},
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : reader_(text, file), file_(file) {}

  SafetensorsHeader parse() {
    SafetensorsHeader header;
    bool metadata_seen = false;
    reader_.expect('{');
    if (!reader_.accept('}')) {
      do {
        std::string key = reader_.string();
        reader_.expect(':');
        if (key == "__metadata__") {
          require(!metadata_seen, printable(file_), ": __metadata__ appears twice");
          metadata_seen = true;
          header.metadata = metadata();
        } else {
          header.entries.push_back(entry(std::move(key)));
        }
      } while (reader_.accept(','));
      reader_.expect('}');
    }
    reader_.expect_end();
    return header;
  }

 private:
  std::map<std::string, std::string> metadata() {
    std::map<std::string, std::string> out;
    reader_.expect('{');
    if (reader_.accept('}')) return out;
    do {
      std::string key = reader_.string();
      reader_.expect(':');
      std::string value = reader_.string();
      require(out.emplace(key, std::move(value)).second, printable(file_), ": metadata \"", printable(key),
              "\" appears twice");
    } while (reader_.accept(','));
    reader_.expect('}');
    return out;
  }

  SafetensorsEntry entry(std::string name) {
    SafetensorsEntry out;
    out.name = std::move(name);
    const std::string where = printable(file_) + ": tensor \"" + printable(out.name) + "\"";
    bool type_seen = false, shape_seen = false, offsets_seen = false;
    const auto once = [&where](bool* seen, const char* field) {
      require(!*seen, where, " has ", field, " twice");
      *seen = true;
    };
    reader_.expect('{');
    do {
      const std::string field = reader_.string();
      reader_.expect(':');
      if (field == "dtype") {
        once(&type_seen, "dtype");
        out.type = type(where);
      } else if (field == "shape") {
        once(&shape_seen, "shape");
        out.dims = shape(where);
      } else if (field == "data_offsets") {
        once(&offsets_seen, "data_offsets");
        reader_.expect('[');
        out.begin = reader_.integer();
        reader_.expect(',');
        out.end = reader_.integer();
        reader_.expect(']');
      } else {
        fail(ErrorCode::kInvalidArgument, where, " has a field \"", printable(field),
             "\", expected dtype, shape or data_offsets");
      }
    } while (reader_.accept(','));
    reader_.expect('}');
    require(type_seen && shape_seen && offsets_seen, where, " has no ",
            !type_seen    ? "dtype"
            : !shape_seen ? "shape"
                          : "data_offsets");
    return out;
  }

  DataType type(const std::string& where) {
    const std::string text = reader_.string();
    for (const TypeName& known : kTypes) {
      if (text == known.text) return known.type;
    }
    fail(ErrorCode::kInvalidArgument, where, " has dtype \"", printable(text),
         "\", expected F64, F32, F16, BF16, I64, I32, I8, U8 or BOOL");
  }

  Dims shape(const std::string& where) {
    Dims dims;
    reader_.expect('[');
    if (reader_.accept(']')) return dims;
    do {
      const std::int64_t size = reader_.integer();
      require(dims.rank() < kMaxRank, where, " has more than ", kMaxRank, " dims, expected at most ", kMaxRank);
      dims.push_back(size);
    } while (reader_.accept(','));
    reader_.expect(']');
    return dims;
  }

  JsonReader reader_;
  const std::string& file_;
};

// Bytes that the dims need, or an error when they do not fit 63 bits. A zero dim does not excuse its neighbours: their
// strides are computed too.
std::int64_t needed_bytes(const SafetensorsEntry& entry, const std::string& where) {
  std::int64_t bytes = static_cast<std::int64_t>(size_bytes(entry.type));
  bool empty = false;
  for (const std::int64_t size : entry.dims) {
    empty = empty || size == 0;
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    require(!__builtin_mul_overflow(bytes, factor, &bytes), where, " has shape ", entry.dims,
            ", whose bytes do not fit 63 bits");
  }
  return empty ? 0 : bytes;
}

void check_layout(const SafetensorsHeader& header, std::int64_t data_bytes, const std::string& file) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string where = printable(file) + ": tensor \"" + printable(entry.name) + "\"";
    require(entry.begin <= entry.end, where, " begins at byte ", entry.begin, " and ends at ", entry.end);
    require(entry.end <= data_bytes, where, " ends at byte ", entry.end, ", the data has ", data_bytes, " bytes");
    const std::int64_t needed = needed_bytes(entry, where);
    require(entry.end - entry.begin == needed, where, " has ", entry.end - entry.begin, " bytes, shape ", entry.dims,
            " of ", type_name(entry.type), " needs ", needed);
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::int64_t at = 0;
  for (const SafetensorsEntry* entry : by_offset) {
    require(entry->begin == at, printable(file), ": tensor \"", printable(entry->name), "\" begins at byte ",
            entry->begin, ", the one before it ends at ", at, entry->begin < at ? " (overlap)" : " (hole)");
    at = entry->end;
  }
  require(at == data_bytes, printable(file), ": tensors end at byte ", at, ", the data has ", data_bytes, " bytes");
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes, const std::string& file) {
  SafetensorsHeader header = HeaderParser(text, file).parse();
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < header.entries.size(); ++i) {
    require(header.entries[i - 1].name != header.entries[i].name, printable(file), ": tensor \"",
            printable(header.entries[i].name), "\" appears twice");
  }
  check_layout(header, data_bytes, file);
  return header;
}

const char* safetensors_type_name(DataType type) {
  for (const TypeName& known : kTypes) {
    if (known.type == type) return known.text;
  }
  fail(ErrorCode::kInternal, "type ", type_name(type), " has no safetensors name");
}

}  // namespace headway
