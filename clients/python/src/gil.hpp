// Lets other threads of Python run during a call.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace terrace::python {

/// Gives the interpreter's lock away until the end of the scope. If the interpreter has ended meanwhile, which it does not wait
/// with for daemon threads, this thread stays here until the process ends: Python would end it by unwinding its stack, and
/// the first function of C++ that lets no exception pass would abort the process.
class gil_released {
 public:
  gil_released() : state_(PyEval_SaveThread()) {}
  ~gil_released() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) { // the unwinding of pthread_exit
      for (;;)
        ::pause();
    }
  }
  gil_released(const gil_released&) = delete;
  gil_released& operator=(const gil_released&) = delete;

 private:
  PyThreadState* state_;
};

} // namespace terrace::python
