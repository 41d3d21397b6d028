// Runs the tests, or one side of a test of two processes (peer.hpp). `--report` prints the machine's own
// driver and its capabilities; the exit code is 1 if there is no driver or no device.
#include "gpu/cuda/driver.hpp"
#include "peer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--peer") == 0)
    return terrace::run_peer(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "--report") == 0) {
    auto found = terrace::cuda::driver::open();
    std::cout << terrace::cuda::report(found);
    return found ? 0 : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
