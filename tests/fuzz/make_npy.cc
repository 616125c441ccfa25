// .npy files: the dict in any order and spacing, and what may be wrong with each of its parts.
#include <utility>

#include "tests/fuzz/make_file_parts.h"

namespace headway::fuzz {
namespace {

constexpr TypeText kNpyTypes[] = {{"<f8", 8}, {"<f4", 4}, {"<f2", 2}, {"<i8", 8},
                                  {"<i4", 4}, {"|i1", 1}, {"|u1", 1}, {"|b1", 1}};
constexpr const char* kWrongDescrs[] = {"'>f4'",     "'<f16'", "'<c8'",    "'|V4'",      "'<U3'", "[('a', '<f4')]",
                                        "'O'",       "f4",     "''",       "'<f4",       "<f4'",  "u'<f4'",
                                        "'<f\\x34'", "None",   "('<f4',)", "'<f4' '<f4'"};

class Maker {
 public:
  explicit Maker(Dice* dice) : dice_(*dice) {}

  MadeFile make() {
    const TypeText& type = dice_.pick(kNpyTypes);
    for (const std::int64_t dim : random_dims(&dice_)) shape_.push_back(std::to_string(dim));
    std::int64_t count = 1;
    for (const std::string& dim : shape_) count *= std::stoll(dim);
    data_ = random_bytes(&dice_, static_cast<std::size_t>(count * type.bytes));
    if (std::strcmp(type.text, "|b1") == 0) {
      for (char& byte : data_) byte = static_cast<char>(byte & 1);
    }
    const char quote = dice_.one_in(4) ? '"' : '\'';
    descr_ = quote + std::string(type.text) + quote;
    made_.right = dice_.one_in(3);
    made_.tensors[""] = data_;
    for (std::int64_t left = made_.right ? 0 : dice_.between(1, 3); left > 0; --left) break_something();
    std::string header = header_text();
    const std::size_t length_bytes = major_ == 1 ? 2 : 4;
    while (aligned_ && (8 + length_bytes + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    const std::uint64_t length = header.size() + header_excess_;
    made_.bytes = magic_ + major_ + minor_ +
                  (length_bytes == 2 ? little_endian(static_cast<std::uint16_t>(length))
                                     : little_endian(static_cast<std::uint32_t>(length))) +
                  header + data_;
    return std::move(made_);
  }

 private:
  void break_something() {
    switch (dice_.below(11)) {
      case 0:
        descr_ = dice_.pick(kWrongDescrs);
        break;
      case 1:
        order_ = dice_.pick({"True", "true", "0", "1", "None", "Falsehood", ""});
        break;
      case 2:
        shape_.push_back(number_text(&dice_));
        break;
      case 3:
        for (std::string& dim : shape_) dim = number_text(&dice_);
        break;
      case 4:
        shape_.resize(dice_.below(20), "1");
        break;
      case 5:
        data_ += random_bytes(&dice_, static_cast<std::size_t>(dice_.between(1, 9)));
        break;
      case 6:
        data_.resize(dice_.below(data_.size() + 1));
        break;
      case 7:
        header_excess_ =
            dice_.pick({std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{60'000}, ~std::uint64_t{0} - 30});
        break;
      case 8:
        major_ = static_cast<char>(dice_.pick({0, 2, 3, 4, 255}));
        minor_ = static_cast<char>(dice_.below(3));
        break;
      case 9:
        more_ =
            dice_.pick({"'more': 1", "'shape': (1,)", "'descr': '<f4'", "", ",", "'fortran_order': False", "}", "'a'"});
        break;
      default:
        magic_[dice_.below(magic_.size())] = static_cast<char>(dice_.below(256));
    }
  }

  std::string space() { return dice_.pick(kSpaces); }

  std::string shape_text() {
    std::string text;
    for (const std::string& dim : shape_) text += space() + dim + space() + ',';
    if (shape_.size() > 1 && dice_.one_in(2)) text.pop_back();
    return '(' + text + space() + ')';
  }

  std::string header_text() {
    std::vector<std::string> entries = {"'descr'" + space() + ':' + space() + descr_,
                                        "'fortran_order'" + space() + ':' + space() + order_,
                                        "'shape'" + space() + ':' + space() + shape_text()};
    if (!more_.empty()) entries.push_back(more_);
    for (std::size_t i = entries.size(); i > 1; --i) std::swap(entries[i - 1], entries[dice_.below(i)]);
    std::string text;
    for (const std::string& entry : entries) text += space() + entry + space() + ',';
    if (dice_.one_in(2)) text.pop_back();
    return '{' + text + space() + '}' + space();
  }

  Dice& dice_;
  MadeFile made_;
  std::vector<std::string> shape_;
  std::string data_, descr_, order_ = "False", more_, magic_ = "\x93NUMPY";
  char major_ = 1, minor_ = 0;
  bool aligned_ = dice_.one_in(2);
  std::uint64_t header_excess_ = 0;
};

}  // namespace

MadeFile make_npy(Dice* dice) { return Maker(dice).make(); }

}  // namespace headway::fuzz
