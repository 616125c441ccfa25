// An engine built without exceptions: includes the headers, links the library and runs. Asks for the release that it
// was compiled against.
#include <headway/build_info.h>
#include <headway/cached_attention.h>
#include <headway/multi_head_attention.h>
#include <headway/session.h>
#include <headway/version.h>

#include <string>

int main() {
  using namespace headway;
  AttentionSpec spec;
  spec.query_len = 1, spec.key_len = 2, spec.head_dim = 1;
  const Attention attention(spec);
  const float query[1] = {0}, key[2] = {0, 0}, value[2] = {1, 3};
  float out[1] = {};
  AttentionArgs args;
  args.query = view_of(query, {1, 1, 1, 1}), args.key = view_of(key, {1, 1, 2, 1});
  args.value = view_of(value, {1, 1, 2, 1}), args.out = view_of(out, {1, 1, 1, 1});
  const AlignedBuffer workspace(attention.workspace_bytes(1));
  attention.run(args, workspace.data(), Threads::serial());
  const std::string release = std::to_string(HEADWAY_VERSION_MAJOR) + "." + std::to_string(HEADWAY_VERSION_MINOR) +
                              "." + std::to_string(HEADWAY_VERSION_PATCH);
  return out[0] == 2 && release == version() && build_info().version == release && release == PACKAGE_VERSION ? 0 : 1;
}
