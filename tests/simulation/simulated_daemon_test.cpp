// The daemon as production wires it, in the simulated machine.
#include "simulated_daemon.hpp"

#include "tests/support/raw_client.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <iostream>

namespace terrace::simulation {
namespace {

settings small_settings(const std::string& socket) {
  environment env;
  settings with = default_settings(env);
  with.listen.front().path = socket;
  with.host.bytes = 4 * mebibyte;
  with.host.segment_bytes = 2 * mebibyte;
  with.disk.path = {simulated_calls::folder};
  with.disk.bytes = 8 * mebibyte;
  with.copier.threads = 1;
  with.metrics.address.clear();
  return with;
}

struct machine {
  explicit machine(uint64_t seed)
      : random(seed), events(random.next()), disk(random.next(), 64 << 20), calls(events, random.next()) {
    EXPECT_EQ(disk.mkdir(simulated_calls::folder), 0);
    EXPECT_EQ(disk.fsync(disk.open("/", O_RDONLY | O_DIRECTORY)), 0);
    calls.mount(disk);
  }
  seeded_random random;
  scheduler events;
  simulated_disk disk;
  simulated_calls calls;
};

TEST(SimulatedDaemon, ServesAClientAndEnds) {
  test::temporary_folder folder;
  machine m(1);
  simulated_daemon daemon(m.events, m.disk,
                          {.with = small_settings(folder.path() + "/s"),
                           .seed = 3,
                           .trace = [](auto at, const std::string& line) {
                             if (std::getenv("TRACE"))
                               std::cout << at.count() << " " << line << "\n";
                           }});
  for (int i = 0; i < 1000 && daemon.step(); ++i) {
  }
  test::raw_client client(folder.path() + "/s");
  EXPECT_TRUE(client.send(test::hello_frame()));
  EXPECT_TRUE(client.send(test::status_frame(2)));
  std::vector<test::received> answers;
  for (int i = 0; i < 1000 && answers.size() < 2 && daemon.step(); ++i)
    while (auto answer = client.next())
      answers.push_back(*answer);
  ASSERT_EQ(answers.size(), 2U);
  const auto& group = *answers[1].as<wire::StatusAnswer>().groups()->Get(0);
  EXPECT_EQ(group.tiers()->size(), 2U);
  for (const auto* tier : *group.tiers())
    EXPECT_EQ(tier->state()->str(), "ready") << (tier->reason() ? tier->reason()->str() : "");
  client.close();
  daemon.drain();
  while (!daemon.ended() && daemon.step()) {
  }
  EXPECT_TRUE(daemon.ended_well());
}

} // namespace
} // namespace terrace::simulation
