// Runs the tests, or one side of a test of two processes (peer.hpp).
#include "peer.hpp"

#include <gtest/gtest.h>

#include <cstring>

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--peer") == 0)
    return terrace::run_peer(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
