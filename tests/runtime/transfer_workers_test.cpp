// Transfer workers: what takes long in their rings delays no other actor.
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace terrace::runtime {
namespace transfer_workers_test {

using test::make_outcome;
using test::outcome;
using test::runtime_system;

using go_atom = caf::atom_constant<caf::atom("go")>;

/// Reports which thread it runs on.
caf::behavior tells_its_thread(caf::event_based_actor*, outcome<std::thread::id> ran_on) {
  return {[ran_on](go_atom) { ran_on->set_value(std::this_thread::get_id()); }};
}

TEST(TransferWorkers, RunOnlyWhatIsPlacedThere) {
  runtime_system sys{runtime_options{.workers = 1, .transfer_workers = 2, .ring_entries = 64}};
  ASSERT_TRUE(sys.pool().wait_started());
  EXPECT_EQ(sys.pool().size(), 3u);
  EXPECT_EQ(sys.pool().serving(), 1u);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(sys.pool().place().worker, 0u);
  auto serving = make_outcome<std::thread::id>();
  spawn_homed(*sys, sys.pool().at(0),
              [serving](homed_actor*) { serving->set_value(std::this_thread::get_id()); });
  const auto serves = serving->get_future().get();
  std::set<size_t> homes;
  std::vector<caf::actor> stay;
  for (int i = 0; i < 2; ++i) {
    auto home = sys.pool().place_transfers();
    homes.insert(home.worker);
    auto own = make_outcome<std::thread::id>(), spawned = make_outcome<std::thread::id>(),
         woken = make_outcome<std::thread::id>();
    auto floating = sys->spawn(tells_its_thread, woken);
    stay.push_back(spawn_homed(*sys, home, [own, spawned, floating](homed_actor* self) -> caf::behavior {
      own->set_value(std::this_thread::get_id());
      self->send(self->spawn(tells_its_thread, spawned), go_atom::value);
      self->send(floating, go_atom::value);
      return {[](go_atom) {}};
    }));
    EXPECT_NE(own->get_future().get(), serves);
    EXPECT_EQ(spawned->get_future().get(), serves) << "a floating actor that was spawned there";
    EXPECT_EQ(woken->get_future().get(), serves) << "a floating actor that was woken there";
  }
  EXPECT_EQ(homes, (std::set<size_t>{1, 2}));
  for (const caf::actor& each : stay)
    caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
}

TEST(TransferWorkers, WithoutThemTheOthersMoveBytes) {
  runtime_system sys{1};
  EXPECT_EQ(sys.pool().place_transfers().worker, 0u);
}

} // namespace transfer_workers_test
} // namespace terrace::runtime
