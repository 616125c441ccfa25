// Parsing and checking of the header. Nothing it says is believed before it is compared with the file's size; what it
// says of types and ranks that this library has not is kept for those who ask for such a tensor.
#include "runtime/safetensors/header.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/printable.h"

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

// Types of the format that a tensor of this library cannot have, by their bits.
struct OtherType {
  const char* text;
  int bits;
};
constexpr OtherType kOtherTypes[] = {
    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
    {"U16", 16}, {"I16", 16},    {"U32", 32},    {"U64", 64},    {"C64", 64},
};
constexpr int kUnknownBits = 0;

// What the header says of a tensor, in its own terms.
struct Claim {
  std::string type;
  std::vector<std::int64_t> shape;
};

int bits_of(const std::string& type) {
  for (const TypeName& known : kTypes) {
    if (type == known.text) return static_cast<int>(8 * size_bytes(known.type));
  }
  for (const OtherType& other : kOtherTypes) {
    if (type == other.text) return other.bits;
  }
  return kUnknownBits;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return '[' + listed(sizes) + ']';
}

// Bytes that the shape needs, or an error when they do not fit 63 bits. A zero does not excuse its neighbours: their
// strides are computed too.
std::int64_t needed_bytes(const Claim& claim, int bits, const std::string& where) {
  std::int64_t needed = bits;
  bool empty = false;
  for (const std::int64_t size : claim.shape) {
    empty = empty || size == 0;
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    require(!__builtin_mul_overflow(needed, factor, &needed), where, " has shape ", text_of(claim.shape),
            ", whose bits do not fit 63 bits");
  }
  return empty ? 0 : needed / 8 + (needed % 8 != 0);
}

// The claim as type and dims, if they are ones of this library.
void set_type_and_dims(const Claim& claim, SafetensorsEntry* entry) {
  const auto known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& type) { return claim.type == type.text; });
  if (known == std::end(kTypes)) {
    entry->refusal =
        " has dtype \"" + printable(claim.type) + "\", expected F64, F32, F16, BF16, I64, I32, I8, U8 or BOOL";
    return;
  }
  entry->type = known->type;
  if (claim.shape.size() > static_cast<std::size_t>(kMaxRank)) {
    entry->refusal =
        " has " + std::to_string(claim.shape.size()) + " dims, expected at most " + std::to_string(kMaxRank);
    return;
  }
  for (const std::int64_t size : claim.shape) entry->dims.push_back(size);
}

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::int64_t data_bytes, const std::string& file)
      : reader_(text, file), file_(file), data_bytes_(data_bytes) {}

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
    Claim claim;
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
        claim.type = reader_.string();
      } else if (field == "shape") {
        once(&shape_seen, "shape");
        claim.shape = shape();
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
    check_size(claim, out, where);
    set_type_and_dims(claim, &out);
    return out;
  }

  void check_size(const Claim& claim, const SafetensorsEntry& entry, const std::string& where) const {
    require(entry.begin <= entry.end, where, " begins at byte ", entry.begin, " and ends at ", entry.end);
    require(entry.end <= data_bytes_, where, " ends at byte ", entry.end, ", the data has ", data_bytes_, " bytes");
    const int bits = bits_of(claim.type);
    if (bits == kUnknownBits) return;
    const std::int64_t needed = needed_bytes(claim, bits, where);
    require(entry.end - entry.begin == needed, where, " has ", entry.end - entry.begin, " bytes, shape ",
            text_of(claim.shape), " of ", claim.type, " needs ", needed);
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    reader_.expect('[');
    if (reader_.accept(']')) return sizes;
    do {
      sizes.push_back(reader_.integer());
    } while (reader_.accept(','));
    reader_.expect(']');
    return sizes;
  }

  JsonReader reader_;
  const std::string& file_;
  const std::int64_t data_bytes_;
};

void check_layout(const SafetensorsHeader& header, std::int64_t data_bytes, const std::string& file) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const SafetensorsEntry& entry : header.entries) by_offset.push_back(&entry);
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
  SafetensorsHeader header = HeaderParser(text, data_bytes, file).parse();
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
