// Headers of safetensors files whose every part can be wrong.
#include <utility>

#include "tests/fuzz/make_file_parts.h"

namespace headway::fuzz {
namespace {

constexpr TypeText kSafetensorsTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                          {"I32", 4}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
constexpr const char* kWrongTypes[] = {"f32", "F4", "F6_E2M3", "F8_E4M3", "C64", "U16", "", "F32 ", "F33", "\\u0046"};

/// One tensor of a header, every part a text so that any can be wrong.
struct Claim {
  std::string name, type, begin, end;
  std::vector<std::string> shape;
};

class Maker {
 public:
  explicit Maker(Dice* dice) : dice_(*dice) {}

  MadeFile make() {
    for (std::int64_t left = dice_.between(0, 3); left > 0; --left) add_tensor();
    made_.right = dice_.one_in(3);
    for (std::int64_t left = made_.right ? 0 : dice_.between(1, 3); left > 0; --left) break_something();
    std::string header = header_text();
    while (dice_.one_in(2) && header.size() % 8 != 0) header += ' ';
    made_.bytes = little_endian<std::uint64_t>(header.size() + header_excess_) + header + data_;
    return std::move(made_);
  }

 private:
  void add_tensor() {
    const TypeText& type = dice_.pick(kSafetensorsTypes);
    const std::vector<std::int64_t> dims = random_dims(&dice_);
    Claim claim;
    claim.name = std::string(kNames[dice_.below(kRightNames)]) + std::to_string(claims_.size());
    claim.type = type.text;
    for (const std::int64_t dim : dims) claim.shape.push_back(std::to_string(dim));
    std::string bytes = random_bytes(&dice_, static_cast<std::size_t>(count_of(dims) * type.bytes));
    if (claim.type == "BOOL") {
      for (char& byte : bytes) byte = static_cast<char>(byte & 1);
    }
    claim.begin = std::to_string(data_.size());
    data_ += bytes;
    claim.end = std::to_string(data_.size());
    made_.tensors[claim.name] = bytes;
    claims_.push_back(std::move(claim));
  }

  void break_something() {
    if (claims_.empty() || dice_.one_in(4)) {
      switch (dice_.below(5)) {
        case 0:
          data_ += random_bytes(&dice_, static_cast<std::size_t>(dice_.between(1, 9)));
          break;
        case 1:
          data_.resize(dice_.below(data_.size() + 1));
          break;
        case 2:
          header_excess_ = dice_.pick({std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                       std::uint64_t{100'000'001}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 32});
          break;
        case 3:
          tail_ = dice_.pick({"x", "}", "{}", ",", "\"", "\\"});
          break;
        default:
          more_fields_ = true;
      }
      return;
    }
    Claim& claim = claims_[dice_.below(claims_.size())];
    switch (dice_.below(9)) {
      case 0:
        claim.begin = number_text(&dice_);
        break;
      case 1:
        claim.end = number_text(&dice_);
        break;
      case 2:
        std::swap(claim.begin, claim.end);
        break;
      case 3:
        claim.type = dice_.pick(kWrongTypes);
        break;
      case 4:
        claim.shape.push_back(number_text(&dice_));
        break;
      case 5:
        for (std::string& dim : claim.shape) dim = number_text(&dice_);
        break;
      case 6:
        claim.name = dice_.pick(kNames);
        break;
      case 7:
        claims_.push_back(Claim(claim));
        break;
      default:
        for (int i = 0; i < 70; ++i) claim.shape.emplace_back("1");
    }
  }

  std::string space() { return dice_.pick(kSpaces); }
  std::string quoted(const std::string& text) { return space() + '"' + text + '"' + space(); }

  std::string claim_text(const Claim& claim) {
    std::string shape;
    for (const std::string& dim : claim.shape) shape += (shape.empty() ? "" : ",") + space() + dim + space();
    std::vector<std::string> fields = {
        quoted("dtype") + ':' + quoted(claim.type), quoted("shape") + ':' + space() + '[' + shape + ']',
        quoted("data_offsets") + ':' + space() + '[' + claim.begin + ',' + space() + claim.end + ']'};
    for (std::size_t i = fields.size(); i > 1; --i) std::swap(fields[i - 1], fields[dice_.below(i)]);
    if (more_fields_ && dice_.one_in(2)) {
      if (dice_.one_in(3)) fields.pop_back();
      fields.push_back(dice_.one_in(2) ? fields.front() : "\"more\":{\"a\":[[[]]]}");
    }
    std::string text;
    for (const std::string& field : fields) text += (text.empty() ? "" : ",") + field;
    return quoted(claim.name) + ':' + space() + '{' + text + '}' + space();
  }

  std::string header_text() {
    std::string text;
    for (const Claim& claim : claims_) text += (text.empty() ? "" : ",") + claim_text(claim);
    if (dice_.one_in(4)) {
      const std::string metadata = quoted("__metadata__") + ':' + space() + '{' + quoted("made") + ':' +
                                   quoted("by \\\"one\\\" \\u00e9\\/") + '}' + space();
      text =
          dice_.one_in(2) ? metadata + (text.empty() ? "" : ",") + text : text + (text.empty() ? "" : ",") + metadata;
    }
    return '{' + space() + text + '}' + tail_;  // the format has it begin with a brace
  }

  Dice& dice_;
  MadeFile made_;
  std::vector<Claim> claims_;
  std::string data_, tail_;
  std::uint64_t header_excess_ = 0;
  bool more_fields_ = false;
};

}  // namespace

MadeFile make_safetensors(Dice* dice) { return Maker(dice).make(); }

}  // namespace headway::fuzz
