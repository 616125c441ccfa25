// Every field is checked for its type and range; one that is not known is refused.
#include "tools/engine/requests_file.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "headway/error.h"

namespace headway::engine {
namespace {

using Json = nlohmann::json;
using detail::require;

/// A value of a line, for messages.
std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 40 ? text.substr(0, 40) + "…" : text;
}

std::int64_t whole(const Json& value, double least, double most, const std::string& where) {
  const bool fits = value.is_number_integer() && value.get<double>() >= least && value.get<double>() <= most;
  require(fits, where, " is ", shown(value), ", expected a whole number from ", least, " to ", most);
  return value.get<std::int64_t>();
}

double real(const Json& value, double least, double most, const std::string& where) {
  const bool fits = value.is_number() && value.get<double>() >= least && value.get<double>() <= most;
  require(fits, where, " is ", shown(value), ", expected a number from ", least, " to ", most);
  return value.get<double>();
}

std::vector<std::int32_t> ids(const Json& value, const std::string& where) {
  require(value.is_array(), where, " is ", shown(value), ", expected a list of token ids");
  std::vector<std::int32_t> result;
  for (const Json& id : value) {
    result.push_back(static_cast<std::int32_t>(whole(id, 0, std::numeric_limits<std::int32_t>::max(), where)));
  }
  return result;
}

Request request_of(const Json& line, Request request, const std::string& place) {
  require(line.is_object(), place, ": is not a JSON object");
  require(line.contains("prompt"), place, ": has no prompt");
  for (const auto& [name, value] : line.items()) {
    const std::string where = place + ": " + name;
    if (name == "prompt") {
      request.prompt = ids(value, where);
    } else if (name == "id") {
      require(value.is_string(), where, " is ", shown(value), ", expected a text");
      request.id = value.get<std::string>();
    } else if (name == "stop") {
      request.stop = ids(value, where);
    } else if (name == "max_new_tokens") {
      request.max_new_tokens = whole(value, 1, 1e9, where);
    } else if (name == "temperature") {
      request.sampling.temperature = real(value, 0, 1e3, where);
    } else if (name == "top_k") {
      request.sampling.top_k = whole(value, 0, 1e9, where);
    } else if (name == "top_p") {
      request.sampling.top_p = real(value, 0, 1, where);
    } else if (name == "seed") {
      request.sampling.seed = static_cast<std::uint64_t>(whole(value, 0, 9e18, where));
    } else {
      detail::fail(ErrorCode::kInvalidArgument, place, ": ", name.substr(0, 40),
                   " is not known; prompt, id, stop, max_new_tokens, temperature, top_k, top_p and seed are");
    }
  }
  return request;
}

}  // namespace

std::vector<std::int32_t> parse_ids(std::string_view text, const char* argument) {
  std::vector<std::int32_t> result;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int32_t id = -1;
    const auto [next, error] = std::from_chars(at, end, id);
    require(error == std::errc() && id >= 0 && (next == end || *next == ','), argument, " has '",
            std::string(at, std::min<std::ptrdiff_t>(end - at, 40)), "', expected token ids separated by commas");
    result.push_back(id);
    if (next == end) return result;
    at = next + 1;
  }
}

std::vector<Request> read_requests(const std::string& path, const Request& defaults) {
  std::ifstream file(path);
  if (!file) detail::fail(ErrorCode::kIo, path, ": cannot be read");
  std::vector<Request> requests;
  std::string text;
  for (std::int64_t line = 1; std::getline(file, text); ++line) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    Request request = defaults;
    request.id = std::to_string(requests.size());
    requests.push_back(request_of(Json::parse(text, nullptr, false), request, path + ", line " + std::to_string(line)));
  }
  require(!requests.empty(), path, ": has no request");
  return requests;
}

std::string result_line(const Sequence& sequence) {
  const auto first = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.request.prompt.size());
  const Json line = {{"id", sequence.request.id}, {"tokens", std::vector<std::int32_t>(first, sequence.tokens.end())}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headway::engine
