// The extension module headway._core.
#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // pools and plans live as long as the process
  module.doc() = "Headway's C++ library; the package headway is its face.";
  headway::python::bind_runtime(module);
  headway::python::bind_attention(module);
  headway::python::bind_cache(module);
  headway::python::bind_layer(module);
  headway::python::bind_session(module);
}
