// Whatever several clients send, in whatever pieces and order, and whenever they leave: verb_session.hpp says what holds.
#include "tests/fuzz/verb_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::fuzz::play({data, size});
  return 0;
}
