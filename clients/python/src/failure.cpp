#include "failure.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace terrace::python {

void register_failures() {
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const failure& failed) {
          const error& why = failed.why();
          nb::object made = nb::module_::import_("terrace.errors")
                                .attr("make")(static_cast<int>(why.code), nb::str(why.text.c_str()));
          PyErr_SetObject(made.type().ptr(), made.ptr());
        }
      },
      nullptr);
}

} // namespace terrace::python
