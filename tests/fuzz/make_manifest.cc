// See make_manifest.h.
#include "tests/fuzz/make_manifest.h"

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/fuzz/spoil.h"

namespace headway::fuzz {
namespace {

using nlohmann::json;

struct Kind {
  ManifestPlace place;
  json right;
};

std::vector<Kind> all_kinds() {
  const json layer = {{"layer", 0}, {"num_heads", 2}, {"batch_first", true}, {"is_causal", false}};
  const json set = {{"padded_rows_agree_with_torch", true}};
  return {
      {{"c", "configs.json"},
       {{"file", "cases.safetensors"},
        {"configs",
         {{{"id", 0},
           {"query", {1, 2, 3, 4}},
           {"is_causal", false},
           {"scale", nullptr},
           {"attn_mask_expanded_to", {1, 2, 3, 3}},
           {"attn_mask_strides", {0, 0, 3, 1}}},
          {{"id", 1},
           {"embed_dim", 8},
           {"num_heads", 2},
           {"batch_first", true},
           {"is_causal", false},
           {"need_weights", true},
           {"average_attn_weights", true},
           {"key", "query"},
           {"value", "key"},
           {"attn_mask", nullptr},
           {"key_padding_mask", nullptr}}}}}},
      {{"l", "manifest.json"}, layer},
      {{"m", "manifest.json"},
       {{"files", {{{"file", "m.onnx"}, {"softmax_nodes", 0}, {"attention_nodes", 0}, {"sets", {set}}}}}}},
      {{"e", "manifest.json"}, {{"file", "m.onnx"}, {"layers", 0}}},
  };
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = all_kinds();
  return all;
}

json odd_value(Dice* dice) {
  switch (dice->below(16)) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return std::numeric_limits<std::int64_t>::max();
    case 3:
      return std::numeric_limits<std::uint64_t>::max();
    case 4:
      return 1e300;
    case 5:
      return dice->pick({0.5, -1e19, 2147483648.0, 9.3e18});
    case 6:
      return dice->one_in(2);
    case 7:
      return dice->pick({"query", "key", "value", "output", "", "cases.safetensors", "../c/cases.safetensors", "m.onnx",
                         ".onnx", "/dev/null", "nowhere"});
    case 8:
      return std::string(dice->below(500), 'n');
    case 9:
      return json::array();
    case 10:
      return json::object();
    case 11:
      return {{"id", 0}, {"query", "query"}};
    case 12: {
      json list = json::array();
      constexpr std::array<std::int64_t, 9> kSizes = {
          -1, 0, 1, 2, 3, 4, 64, std::int64_t{1} << 30, std::int64_t{1} << 62};
      for (std::int64_t left = dice->between(1, 6); left > 0; --left) list.push_back(dice->pick(kSizes));
      return list;
    }
    case 13:
      return json::array({std::string("text"), nullptr, 3});
    case 14:
      return std::string("a\nb\0c", 5);
    default:
      return dice->between(0, 12);
  }
}

/// Any value inside, all as likely.
json* any_value(Dice* dice, json* from) {
  std::vector<json*> all;
  const std::function<void(json*)> collect = [&](json* at) {
    all.push_back(at);
    if (!at->is_structured()) return;
    for (json& inside : *at) collect(&inside);
  };
  collect(from);
  return all[dice->below(all.size())];
}

void break_json(Dice* dice, json* root) {
  constexpr const char* kKeys[] = {"id",           "file",
                                   "configs",      "query",
                                   "embed_dim",    "num_heads",
                                   "num_kv_heads", "is_causal",
                                   "scale",        "attn_mask_expanded_to",
                                   "files",        "sets",
                                   "layers",       "attn_mask_strides"};
  json* at = any_value(dice, root);
  switch (dice->below(5)) {
    case 0:
      if (at->is_object() && !at->empty()) {
        at->erase(std::next(at->begin(), static_cast<std::ptrdiff_t>(dice->below(at->size()))));
        break;
      }
      [[fallthrough]];
    case 1:
      if (at->is_object()) {
        (*at)[dice->pick(kKeys)] = odd_value(dice);
        break;
      }
      [[fallthrough]];
    case 2:
      if (at->is_array() && !at->empty()) {
        at->push_back(json(at->front()));
        break;
      }
      [[fallthrough]];
    default:
      *at = odd_value(dice);
  }
}

}  // namespace

const std::vector<ManifestPlace>& manifest_places() {
  static const std::vector<ManifestPlace> places = [] {
    std::vector<ManifestPlace> all;
    for (const Kind& kind : kinds()) all.push_back(kind.place);
    return all;
  }();
  return places;
}

MadeManifest make_manifest(Dice* dice) {
  const Kind& kind = dice->pick(kinds());
  MadeManifest made{kind.place, "", dice->one_in(8)};
  json root = kind.right;
  for (std::int64_t left = made.right ? 0 : dice->between(1, 3); left > 0; --left) break_json(dice, &root);
  made.text = root.dump(dice->one_in(2) ? -1 : 1, ' ', false, json::error_handler_t::replace);
  if (!made.right && dice->one_in(4)) spoil_bytes(dice, &made.text, kLittleMore);
  return made;
}

}  // namespace headway::fuzz
