// A small problem for a call of the C API, and an object's life: made, asked for its workspace, run, ended.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headway/headway.h"
#include "tests/fuzz/dice.h"

namespace headway::fuzz {

constexpr std::size_t kMaxWorkspace = std::size_t{64} << 20;

/// Sizes of a small problem.
struct Sizes {
  explicit Sizes(Dice* dice)
      : batch(dice->between(1, 3)),
        kv_heads(dice->between(1, 2)),
        heads(kv_heads * dice->between(1, 3)),
        width(dice->pick({2, 4, 16})),
        tokens(batch * dice->between(1, 3)),
        rows(dice->between(3, 9)) {}
  std::int64_t batch, kv_heads, heads, width, tokens, rows;

  std::vector<std::int32_t> starts() const {
    std::vector<std::int32_t> result;
    for (std::int64_t b = 0; b <= batch; ++b) result.push_back(static_cast<std::int32_t>(b * tokens / batch));
    return result;
  }
  std::vector<std::int32_t> lengths() const {
    return std::vector<std::int32_t>(static_cast<std::size_t>(batch), static_cast<std::int32_t>(rows));
  }
};

/// What an object's functions are: create, workspace_bytes, run, destroy, explain.
template <class Object>
struct Functions {
  headway_status (*workspace_bytes)(const Object*, int, std::size_t*);
  void (*destroy)(Object*);
  headway_status (*explain)(const Object*, char*, std::size_t, std::size_t*);
};

/// Runs an object that was made. `run` gets it and a workspace.
template <class Object, class Run>
headway_status use(headway_status made, Object* object, const Functions<Object>& functions, Run run) {
  if (made != HEADWAY_OK) return made;
  const std::unique_ptr<Object, void (*)(Object*)> held(object, functions.destroy);
  std::size_t bytes = 0, needed = 0;
  headway_status status = functions.workspace_bytes(object, 1, &bytes);
  if (status != HEADWAY_OK || bytes > kMaxWorkspace) return status;
  char text[64];
  status = functions.explain(object, text, sizeof(text), &needed);
  if (status != HEADWAY_OK) return status;
  const std::unique_ptr<void, void (*)(void*)> workspace(headway_allocate(bytes), headway_free);
  return run(object, workspace.get());
}

}  // namespace headway::fuzz
