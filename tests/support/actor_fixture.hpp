// Actors on one thread: CAF's testing scheduler, with a simulated ring under their I/O.
//
//   class DiskActor : public terrace::test::actor_fixture {};
//   TEST_F(DiskActor, AnswersAnInjectedError) {
//     ring.fail_next(io_code::read, EIO);
//     auto disk = spawn_homed(sys, home(), disk_actor, ...);
//     settle();                                 // runs actors and completions until nothing moves
//   }
//
// An actor without a home takes the port as an argument: `&port()`.
#pragma once

#include "tests/support/simulated_actors.hpp"

#include <gtest/gtest.h>

namespace terrace::test {

class actor_fixture : public ::testing::Test, public simulated_actors {
 public:
  /// Seed 0: completions keep their order.
  explicit actor_fixture(uint64_t seed = 0) : simulated_actors(seed) {}
};

} // namespace terrace::test
