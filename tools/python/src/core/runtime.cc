// Threads, profiler and errors of the module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "bindings.h"
#include "headway/error.h"
#include "headway/version.h"

namespace headway::python {
namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
  }
  return "unknown";
}

}  // namespace

void bind_runtime(nb::module_& module) {
  static PyObject* error_type = nullptr;
  error_type = PyErr_NewExceptionWithDoc("headway.Error",
                                         "What every function of Headway raises; `code` is its kind in one word.",
                                         PyExc_ValueError, nullptr);
  module.attr("Error") = nb::handle(error_type);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      nb::object raised = nb::handle(error_type)(error.what());
      raised.attr("code") = name_of(error.code());
      PyErr_SetObject(error_type, raised.ptr());
    }
  });
  module.attr("__version__") = version();

  nb::class_<Threads>(module, "Threads",
                      "Workers that runs share: the calling thread and a pool of sleeping threads. Usable from several "
                      "threads at once and in a forked child.")
      .def(
          "__init__", [](Threads* self, int workers) { new (self) Threads(Threads::pool(workers)); },
          nb::arg("workers") = 0, "`workers` threads; 0 takes the CPUs that the process may use.")
      .def_static(
          "openmp", [](int workers) { return Threads::openmp(workers); }, nb::arg("workers") = 0,
          "`workers` threads of the process's OpenMP team; 0 takes OpenMP's own number. Not for a child forked after "
          "its parent used OpenMP: it would wait for threads that it does not have.")
      .def_prop_ro("workers", &Threads::workers)
      .def("__repr__", [](const Threads& self) { return "Threads(" + std::to_string(self.workers()) + ")"; });

  nb::class_<Profiler>(module, "Profiler", "Collects where the time and the work of runs went.")
      .def(
          "__init__",
          [](Profiler* self, int workers, std::size_t events) {
            new (self) Profiler(Profiler::Options{workers, events});
          },
          nb::arg("workers"), nb::arg("trace_events_per_worker") = 0)
      .def("clear", &Profiler::clear, "Forgets what was recorded.")
      .def("table", &Profiler::table, nb::arg("peak_flops") = 0.0, "A table as text.")
      .def("json", &Profiler::json, "Totals a zone as JSON.")
      .def("chrome_trace", &Profiler::chrome_trace, "Chrome's trace event format as text; opens in Perfetto.");
}

}  // namespace headway::python
