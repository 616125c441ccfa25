// A scanner that reads the dict front to back, once. See npy_header.h.
#include "tools/model/npy_header.h"

#include <cstdint>
#include <limits>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"

namespace headway::tools {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kVersionAt = 6;  // two bytes, then the header's length

class Scanner {
 public:
  /// `begin` is where `text` stands in the file.
  Scanner(std::string_view text, std::size_t begin, const std::string& path)
      : text_(text), begin_(begin), path_(path) {}

  NpyHeader header() {
    NpyHeader out;
    bool descr_seen = false, order_seen = false, shape_seen = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(&descr_seen, key);
        out.descr = descr();
      } else if (key == "fortran_order") {
        once(&order_seen, key);
        out.fortran_order = boolean();
      } else if (key == "shape") {
        once(&shape_seen, key);
        out.shape = shape();
      } else {
        fail(ErrorCode::kInvalidArgument, path_, ": its header has the key ", quoted(key),
             ", expected 'descr', 'fortran_order' or 'shape'");
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) fail_here("nothing but spaces after '}'");
    require(descr_seen && order_seen && shape_seen, path_, ": its header has no ",
            !descr_seen   ? "'descr'"
            : !order_seen ? "'fortran_order'"
                          : "'shape'");
    return out;
  }

 private:
  [[noreturn]] void fail_here(const std::string& expected) const {
    const std::string found =
        at_ < text_.size() ? "is '" + printable(text_.substr(at_, 1)) + "'" : std::string("is the header's end");
    fail(ErrorCode::kInvalidArgument, path_, ": byte ", begin_ + at_, " ", found, ", expected ", expected);
  }

  void once(bool* seen, const std::string& key) const {
    require(!*seen, path_, ": its header has '", key, "' twice");
    *seen = true;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r\f").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool accept(char symbol) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != symbol) return false;
    ++at_;
    return true;
  }

  void expect(char symbol) {
    if (!accept(symbol)) fail_here(std::string("'") + symbol + "'");
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail_here("True or False");
  }

  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail_here("a string in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      fail_here("the end of a string");
    }
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (const std::size_t escape = inside.find('\\'); escape != std::string_view::npos) {
      at_ += 1 + escape;
      fail_here("a string without escapes");
    }
    at_ = end + 1;
    return std::string(inside);
  }

  std::string descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      fail(ErrorCode::kUnsupported, path_, ": its elements have fields of their own, which is not supported");
    }
    return string();
  }

  std::int64_t size() {
    skip_space();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const int digit = text_[at_] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) fail_here("a size that fits 63 bits");
      value = value * 10 + digit;
    }
    if (at_ == begin) fail_here("a size, 0 or more, or the end of the shape");
    if (text_[begin] == '0' && at_ - begin > 1) {
      at_ = begin;
      fail_here("a size without leading zeros");
    }
    return value;
  }

  /// (), (3,), (3, 4) or (3, 4,): "(3)" is a number to Python.
  Dims shape() {
    Dims dims;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail_here("',' or ')'");
      const std::int64_t axis = size();
      require(dims.rank() < kMaxRank, path_, ": its shape has more than ", kMaxRank, " dims, expected at most ",
              kMaxRank);
      dims.push_back(axis);
      comma = accept(',');
      if (!comma && dims.rank() == 1) fail_here("',' after the only size");
    }
    return dims;
  }

  const std::string_view text_;
  const std::size_t begin_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  const std::string shown = printable(path);
  require(bytes.size() >= kVersionAt + 2 && bytes.substr(0, kMagic.size()) == kMagic, shown, ": not an .npy file");
  const std::size_t major = byte(kVersionAt), minor = byte(kVersionAt + 1);
  if (major < 1 || major > 3 || minor != 0) {
    fail(ErrorCode::kUnsupported, shown, ": is of .npy version ", major, ".", minor,
         ", supported are 1.0, 2.0 and 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = kVersionAt + 2 + length_bytes;
  require(bytes.size() >= begin, shown, ": has ", bytes.size(), " bytes, expected at least ", begin);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(kVersionAt + 2 + i) << (8 * i);
  require(length <= bytes.size() - begin, shown, ": its header has ", length, " bytes, the file has ",
          bytes.size() - begin, " after the header's length");
  NpyHeader header = Scanner(bytes.substr(begin, length), begin, shown).header();
  header.data_offset = begin + length;
  return header;
}

}  // namespace headway::tools
