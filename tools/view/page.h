// A page: HTML, style and script as the files of page/ have them, with the data in between. Knows no attention.
#pragma once

#include <string>
#include <vector>

namespace headway::tools {

/// One script element of base64, which the page decodes when it is looked at.
struct PageData {
  std::string id;
  std::string bytes;
};

/// A whole HTML file that asks for nothing. `json` is what the page shows, as one object. It is there before the page
/// starts, and so is what is small; what is large follows, and is parsed while the page is already in use.
struct PageParts {
  std::string file = "page.html";  ///< of page/
  std::string title;
  std::string json;
  std::vector<PageData> small;
  std::vector<PageData> large;
};
std::string page(const PageParts& parts);

}  // namespace headway::tools
