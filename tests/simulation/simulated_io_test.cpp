#include "simulated_io.hpp"

#include <gtest/gtest.h>
TEST(SimulatedIo, Todo) {}
