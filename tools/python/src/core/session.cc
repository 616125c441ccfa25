// headway._core.Session: an ONNX model by its inputs' names.
#include "headway/session.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "headway/error.h"
#include "headway/model.h"

namespace headway::python {
namespace {

class HeldModel {
 public:
  HeldModel(const std::string& path, bool fused, int plan_cache_capacity, std::optional<std::size_t> memory_limit_bytes)
      : model_(load_model(path, {.fused = fused,
                                 .session = {.plan_cache_capacity = plan_cache_capacity,
                                             .memory_limit_bytes = memory_limit_bytes}})) {}

  const Session& session() const { return model_.session(); }
  const Model& model() const { return model_; }

  // In the graph's order, held.
  std::vector<InputArray> inputs(const nb::dict& given) const {
    std::vector<InputArray> arrays(session().input_names().size());
    for (auto [name, array] : given) {
      const auto text = nb::cast<std::string>(name);
      arrays[session().input_index(text)] = input_array(array, text.c_str());
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      detail::require(arrays[i].view.present, "input ", session().input_names()[i], " is missing, ", given.size(),
                      " of ", arrays.size(), " are given");
    }
    return arrays;
  }

 private:
  Model model_;
};

std::vector<TensorInfo> infos_of(const std::vector<InputArray>& arrays) {
  std::vector<TensorInfo> infos;
  for (const InputArray& array : arrays) infos.push_back({array.view.type, array.view.dims, true});
  return infos;
}

nb::list input_infos(const HeldModel& self) {
  nb::list rows;
  for (const InputInfo& info : self.session().input_infos()) {
    nb::list dims;
    for (const SymbolicDim& dim : info.dims) {
      if (const auto* size = std::get_if<std::int64_t>(&dim)) {
        dims.append(*size);
      } else {
        const auto* name = std::get_if<std::string>(&dim);
        dims.append(name ? *name : std::string());
      }
    }
    rows.append(nb::make_tuple(info.name, type_name(info.type), nb::tuple(dims)));
  }
  return rows;
}

nb::list output_infos(const HeldModel& self, const nb::dict& given) {
  const std::vector<InputArray> arrays = self.inputs(given);
  std::vector<TensorInfo> infos;
  {
    const nb::gil_scoped_release released;
    infos = self.session().output_infos(infos_of(arrays));
  }
  nb::list rows;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    nb::list dims;
    for (std::int64_t dim : infos[i].dims) dims.append(dim);
    rows.append(nb::make_tuple(self.session().output_names()[i], type_name(infos[i].type), nb::tuple(dims)));
  }
  return rows;
}

void run(const HeldModel& self, const nb::dict& given, const nb::list& outputs, const Threads& threads,
         Profiler* profiler) {
  const std::vector<InputArray> arrays = self.inputs(given);
  std::vector<OutputArray> written;
  for (nb::handle output : outputs) written.push_back(output_array(output, "output"));
  std::vector<ConstTensorView> from;
  for (const InputArray& array : arrays) from.push_back(array.view);
  std::vector<TensorView> to;
  for (const OutputArray& array : written) to.push_back(array.view);
  const nb::gil_scoped_release released;
  self.session().run(from, to, threads, profiler);
}

std::string explain(const HeldModel& self, const nb::dict& given, int workers) {
  const std::vector<InputArray> arrays = self.inputs(given);
  const nb::gil_scoped_release released;
  return self.session().explain(infos_of(arrays), workers);
}

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<HeldModel>(module, "Session")
      .def(nb::init<const std::string&, bool, int, std::optional<std::size_t>>(), nb::arg("path"), nb::arg("fused"),
           nb::arg("plan_cache_capacity"), nb::arg("memory_limit_bytes").none(),
           nb::call_guard<nb::gil_scoped_release>())
      .def("input_infos", &input_infos)
      .def("output_names",
           [](const HeldModel& self) {
             nb::list names;
             for (const std::string& name : self.session().output_names()) names.append(name);
             return names;
           })
      .def("output_infos", &output_infos)
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs"), nb::arg("threads"), nb::arg("profiler").none())
      .def("explain", &explain)
      .def("fusion", [](const HeldModel& self) { return self.model().fusion().text(); });
}

}  // namespace headway::python
