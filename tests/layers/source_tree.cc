// Walks a source tree: which files count, what their includes resolve to, and which rule of rules.h each one breaks.
#include "tests/layers/source_tree.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>

#include "tests/layers/rules.h"

namespace headway::layers {
namespace {

namespace fs = std::filesystem;

bool matches(std::string_view path, std::string_view pattern) {
  return pattern.starts_with('*') ? path.ends_with(pattern.substr(1)) : path.starts_with(pattern);
}

bool matches_any(std::string_view path, const Patterns& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view p) { return matches(path, p); });
}

struct SourceFile {
  std::string path;  // below the root, with '/'
  std::vector<std::string> lines;

  bool is_cpp() const { return path.ends_with(".cc") || path.ends_with(".h") || path.ends_with(".c"); }
  bool is_prose() const { return path.ends_with(".md"); }
};

bool is_source(const fs::path& file) {
  static const std::set<std::string> kExtensions = {".cc", ".c", ".h", ".sh", ".cmake", ".py", ".js", ".md"};
  return kExtensions.contains(file.extension().string()) || file.filename() == "CMakeLists.txt" ||
         (file.filename() == "run" && file.parent_path().filename() == ".ci");
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  static const std::set<std::string> kSkipped = {".git", "build", ".cache"};
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    if (it->is_directory() && kSkipped.contains(it->path().filename().string())) it.disable_recursion_pending();
    if (!it->is_regular_file() || !is_source(it->path())) continue;
    SourceFile file{fs::relative(it->path(), root).generic_string(), {}};
    std::ifstream in(it->path());
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

/// The path below the root that an include means: beside the includer, below the root or a public header; or the name
/// itself when it is none of these.
std::string resolve(const fs::path& root, const std::string& includer, const std::string& name) {
  const fs::path beside = (fs::path(includer).parent_path() / name).lexically_normal();
  for (const fs::path& candidate :
       {beside, fs::path(name), "runtime/include" / fs::path(name), "ops/include" / fs::path(name)}) {
    if (fs::is_regular_file(root / candidate)) return candidate.generic_string();
  }
  return name;
}

bool is_standard_header(std::string_view name) {
  return name.find_first_of("./") == std::string_view::npos ||
         std::find(kCHeaders.begin(), kCHeaders.end(), name) != kCHeaders.end();
}

/// Empty when `includer` may include `included`.
std::string include_violation(const std::string& includer, const std::string& included) {
  for (const IncludeRule& rule : kIncludeRules) {
    if (!matches_any(included, rule.included)) continue;
    if (matches_any(includer, rule.from)) return "";
    std::string allowed;
    for (std::string_view from : rule.from) allowed += (allowed.empty() ? "" : ", ") + std::string(from);
    return "includes " + included + ", which only these may: " + allowed;
  }
  if (is_standard_header(included)) return "";
  return "includes " + included + ", which is neither a file here nor of the standard library nor in rules.h";
}

bool holds(std::string_view line, const WordRule& rule) {
  const std::string word = std::string(rule.first_half) + std::string(rule.second_half);
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (!rule.is_path || at == 0) return true;
    const unsigned char before = static_cast<unsigned char>(line[at - 1]);
    if (!std::isalnum(before) && before != '_' && before != '.' && before != '}' && before != '-') return true;
  }
  return false;
}

bool starts_with_comment(const SourceFile& file) {
  if (file.lines.empty()) return false;
  if (file.is_cpp()) return file.lines[0].starts_with("//") || file.lines[0].starts_with("/*");
  if (file.path.ends_with(".js")) return file.lines[0].starts_with("//") || file.lines[0].starts_with("/*");
  const std::size_t first = file.lines[0].starts_with("#!") ? 1 : 0;
  return file.lines.size() > first && (file.lines[first].starts_with("#") ||
                                       (file.path.ends_with(".py") && file.lines[first].starts_with("\"\"\"")));
}

class Report {
 public:
  void add(const SourceFile& file, std::size_t line, const std::string& what) {
    lines_.push_back(file.path + ":" + std::to_string(line) + ": " + what);
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void check_includes(const fs::path& root, const SourceFile& file, Report* report) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(file.lines[i], match, kInclude)) continue;
    const std::string what = include_violation(file.path, resolve(root, file.path, match[1]));
    if (!what.empty()) report->add(file, i + 1, what);
  }
}

void check_words(const SourceFile& file, Report* report) {
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    for (const WordRule& rule : kWordRules) {
      if (matches_any(file.path, rule.from) || !holds(file.lines[i], rule)) continue;
      report->add(file, i + 1, "holds " + std::string(rule.first_half) + std::string(rule.second_half));
    }
  }
}

void check_form(const SourceFile& file, Report* report) {
  if (!starts_with_comment(file)) report->add(file, 1, "does not start with a comment");
  if (file.lines.size() > kMaxLines) {
    report->add(file, file.lines.size(), "is longer than " + std::to_string(kMaxLines) + " lines");
  }
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (file.lines[i].find('\t') != std::string::npos) report->add(file, i + 1, "has a tab");
  }
}

}  // namespace

std::vector<std::string> violations(const fs::path& root) {
  Report report;
  for (const SourceFile& file : read_tree(root)) {
    if (file.is_cpp()) check_includes(root, file, &report);
    check_words(file, &report);
    if (!file.is_prose()) check_form(file, &report);
  }
  return report.take();
}

std::size_t source_file_count(const fs::path& root) { return read_tree(root).size(); }

}  // namespace headway::layers
