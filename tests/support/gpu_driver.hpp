// The driver that tests of GPUs use: the simulated one, or with TERRACE_GPU_TESTS=real the machine's own.
// Programs that include this define TERRACE_SIMULATED_DRIVER, the path of the simulated one in their build.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace terrace::test {

inline bool on_real_driver() {
  const char* wanted = ::getenv("TERRACE_GPU_TESTS");
  return wanted != nullptr && std::string_view(wanted) == "real";
}

/// Returns the simulated driver of this build, unless the program was moved elsewhere (tools/bundle).
inline std::string simulated_driver() {
  const char* elsewhere = ::getenv("TERRACE_SIMULATED_DRIVER");
  return elsewhere != nullptr ? elsewhere : TERRACE_SIMULATED_DRIVER;
}

/// Returns the argument of `cuda::driver::open`.
inline std::string driver_library() { return on_real_driver() ? "libcuda.so.1" : simulated_driver(); }

/// Called in a process that is about to become the daemon, so that its GPU processes find the same driver.
/// The existing search path is kept, because ThreadSanitizer has a CAF of its own.
inline void find_driver() {
  if (on_real_driver())
    return;
  std::string path = std::filesystem::path(simulated_driver()).parent_path();
  if (const char* before = ::getenv("LD_LIBRARY_PATH"))
    path += std::string(":") + before;
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

#ifdef TERRACE_SIMULATED_CUFILE
inline std::string simulated_cufile() {
  const char* elsewhere = ::getenv("TERRACE_SIMULATED_CUFILE");
  return elsewhere != nullptr ? elsewhere : TERRACE_SIMULATED_CUFILE;
}

/// Makes the simulated cuFile findable; only the callers of this find it.
inline void find_cufile() {
  std::string path = std::filesystem::path(simulated_cufile()).parent_path();
  if (const char* before = ::getenv("LD_LIBRARY_PATH"))
    path += std::string(":") + before;
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}
#endif

} // namespace terrace::test

#define SKIP_ON_REAL_DRIVER()                                                                                \
  if (terrace::test::on_real_driver())                                                                       \
  GTEST_SKIP() << "needs the simulated driver's controls"
