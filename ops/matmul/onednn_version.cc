// See onednn_version.h.
#include "ops/matmul/onednn_version.h"

#include <oneapi/dnnl/dnnl.h>

#include "runtime/base/check.h"

namespace headway {
namespace {

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

std::string onednn_compiled_version() { return dotted(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH); }

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return dotted(v->major, v->minor, v->patch);
}

void require_same_onednn(int compiled_major, int runtime_major) {
  if (compiled_major == runtime_major) return;
  fail(ErrorCode::kUnsupported, "oneDNN is major version ", runtime_major, " at run time, expected ", compiled_major,
       " as compiled against");
}

}  // namespace headway
