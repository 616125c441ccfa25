// See page.h.
#include "tools/view/page.h"

#include <string_view>

#include "tools/view/bytes.h"
#include "tools/view/page_files.h"

namespace headway::tools {
namespace {

/// Text inside of an element.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// JSON inside of a script element, which "</script" or "<!--" would end or change.
std::string in_script(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

void add_elements(const std::vector<PageData>& data, std::string* out) {
  for (const PageData& part : data) {
    *out += "<script type=\"text/plain\" id=\"" + part.id + "\">" + base64(part.bytes) + "</script>\n";
  }
}

}  // namespace

std::string page(const PageParts& parts) {
  std::string out;
  std::string_view rest = page_file(parts.file);
  // <!--name--> stands for what is put in its place; other comments stay.
  while (!rest.empty()) {
    const std::size_t begin = rest.find("<!--"), end = rest.find("-->", begin);
    if (end == std::string_view::npos) break;
    const std::string_view name = rest.substr(begin + 4, end - begin - 4);
    out += rest.substr(0, begin);
    if (name == "title") {
      out += escaped(parts.title);
    } else if (name == "data") {
      out += "<script type=\"application/json\" id=\"headway-data\">" + in_script(parts.json) + "</script>\n";
      add_elements(parts.small, &out);
    } else if (name == "later") {
      add_elements(parts.large, &out);
    } else {
      out += page_file(name);
    }
    rest.remove_prefix(end + 3);
  }
  out += rest;
  return out;
}

}  // namespace headway::tools
