// How a fuzzer ends: what was promised and does not hold is printed, and the process aborts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace terrace::fuzz {

[[noreturn]] inline void broken(const std::string& what) {
  std::fprintf(stderr, "broken promise: %s\n", what.c_str());
  std::abort();
}

inline void promise(bool holds, const char* what) {
  if (!holds)
    broken(what);
}

template <class A, class B>
void promise_equal(const A& seen, const B& expected, const char* what) {
  if (!(seen == expected))
    broken(std::string(what) + ": expected " + std::to_string(expected) + ", got " + std::to_string(seen));
}

} // namespace terrace::fuzz
