#include "simulated_disk.hpp"

#include <gtest/gtest.h>
TEST(SimulatedDisk, Todo) {}
