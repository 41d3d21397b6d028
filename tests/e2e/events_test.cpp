// Subscriptions: they report what is there, and then what comes and goes.
#include "resp_client.hpp"
#include "workload.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <tuple>

namespace terrace::e2e {
namespace {

bool has_text(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Objects by tier, space and digest, as a subscriber knows them.
struct known_objects {
  std::set<std::tuple<tier_kind, uint32_t, digest>> present;
  client::event_cursor at;
  std::vector<client::event> events;

  /// Returns an error if reading fails.
  result<bool> read(client::connection& from, client::deadline until) {
    auto part = from.admin().subscribe(at, 1000, until);
    if (!part)
      return tl::unexpected(part.error());
    for (const client::event& one : part->events) {
      if (!part->snapshot) {
        EXPECT_EQ(one.sequence, ++at.sequence);
        events.push_back(one);
      }
      std::tuple key(one.tier, one.space, one.chunk);
      if (one.what == client::event_kind::admit)
        present.insert(key);
      else
        present.erase(key);
    }
    at = part->next;
    return !part->snapshot || part->next.tier == client::event_cursor{}.tier;
  }
  void snapshot(client::connection& from) {
    while (true) {
      auto complete = read(from, patiently());
      ASSERT_TRUE(complete) << complete.error().text;
      if (*complete)
        return;
    }
  }
  /// Reads most or all of what has happened so far: call it again until that is enough.
  void catch_up(client::connection& from) {
    while (true) {
      auto more = read(from, client::within(std::chrono::milliseconds(100)));
      if (!more) {
        ASSERT_EQ(more.error().code, errc::deadline) << more.error().text;
        return;
      }
    }
  }
  size_t in(tier_kind tier) const {
    return static_cast<size_t>(std::count_if(present.begin(), present.end(),
                                             [&](const auto& one) { return std::get<0>(one) == tier; }));
  }
};

client::connection subscriber(const daemon_under_test& daemon) {
  return std::move(*client::connection::connect({.path = daemon.socket(), .name = "subscriber"}));
}

TEST(Events, ASubscriberKnowsWhatTheTiersHave) {
  daemon_under_test daemon(
      {.host_bytes = 16 * mebibyte, .disk_bytes = 64 * mebibyte, .disk = "admission = \"always\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  client.store(chain_of(1, 5));
  auto watch = subscriber(daemon);
  known_objects known;
  known.snapshot(watch);
  EXPECT_EQ(known.in(tier_kind::host), 5u);
  for (uint64_t i = 2; i < 10; ++i)
    client.store(chain_of(i, 6));
  ASSERT_TRUE(eventually([&] {
    known.catch_up(watch);
    return known.in(tier_kind::host) == client.tier("host").objects &&
           known.in(tier_kind::disk) == client.tier("disk").objects;
  }));
  EXPECT_LT(known.in(tier_kind::host), 16u);
  auto count = [&](client::event_kind what) {
    return std::count_if(known.events.begin(), known.events.end(),
                         [&](const auto& one) { return one.what == what; });
  };
  EXPECT_GT(count(client::event_kind::demote), 0); // the disk had them
  ASSERT_TRUE(client->admin().clear());
  ASSERT_TRUE(eventually([&] {
    known.catch_up(watch);
    return known.present.empty();
  }));
  EXPECT_GT(count(client::event_kind::clear), 0);
}

TEST(Events, ASnapshotAmidChangesIsMadeWholeByWhatFollows) {
  daemon_under_test daemon({.host_bytes = 16 * mebibyte});
  tester client(daemon.socket());
  auto watch = subscriber(daemon);
  for (uint64_t round = 0; round < 10; ++round) {
    known_objects known;
    auto first = known.read(watch, patiently());
    ASSERT_TRUE(first);
    client.store(chain_of(100 + round, 6)); // between the parts of the snapshot, or after it
    if (!*first)
      known.snapshot(watch);
    EXPECT_TRUE(eventually([&] {
      known.catch_up(watch);
      return known.in(tier_kind::host) == client.tier("host").objects;
    })) << "round "
        << round;
  }
}

TEST(Events, ASubscriberThatIsTooSlowIsToldWhereItIs) {
  temporary_folder folder{"/tmp"};
  std::string door = folder / "resp.sock";
  daemon_options with;
  with.more = resp_section(door);
  daemon_under_test daemon(with);
  auto watch = subscriber(daemon);
  known_objects known;
  known.snapshot(watch);
  resp_client writer(door);
  std::string all;
  constexpr int writes = 40'000; // two events each: the former value, and the new one
  std::thread reader([&] {
    for (int i = 0; i < writes; ++i)
      ASSERT_EQ(writer.reply(), "OK");
  });
  for (int i = 0; i < writes; ++i) {
    all += resp_call({"SET", "key" + std::to_string(i % 32), "v"});
    if (all.size() > 60'000)
      writer.send(std::exchange(all, {}));
  }
  writer.send(all);
  reader.join();
  auto lost = known.read(watch, patiently());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone);
  EXPECT_TRUE(has_text(lost.error().text, "are kept: begin with a new snapshot")) << lost.error().text;
  known_objects anew;
  anew.snapshot(watch);
  EXPECT_EQ(anew.in(tier_kind::host), 32u);
}

TEST(Events, NothingHappensUntilTheDeadlineAndACursorMustBeOfAnAnswer) {
  daemon_under_test daemon;
  auto watch = subscriber(daemon);
  known_objects known;
  known.snapshot(watch);
  auto nothing = watch.admin().subscribe(known.at, 10, client::within(std::chrono::milliseconds(50)));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, errc::deadline);
  auto wrong = watch.admin().subscribe({1, 7, 0}, 10, patiently());
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, errc::bad_request);
  auto ahead = watch.admin().subscribe({1'000'000, 255, 0}, 10, patiently());
  ASSERT_FALSE(ahead);
  EXPECT_EQ(ahead.error().code, errc::gone);
  auto none = watch.admin().subscribe(known.at, 0, patiently());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::bad_request);
}

TEST(Events, AShutdownDoesNotWaitForSubscribers) {
  daemon_under_test daemon;
  auto watch = subscriber(daemon);
  known_objects known;
  known.snapshot(watch);
  std::thread waiting([&] {
    auto ended = watch.admin().subscribe(known.at, 10, patiently());
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, errc::busy) << ended.error().text;
  });
  tester other(daemon.socket());
  EXPECT_TRUE(eventually([&] { // the request waits there
    for (const auto& one : other.status().clients)
      if (one.name == "subscriber" && one.requests_in_flight != 0)
        return true;
    return false;
  }));
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_FALSE(daemon.has_logged("did not finish within daemon.shutdown_grace"));
  waiting.join();
}

TEST(Events, TheCommandShowsThem) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  client.store(chain_of(1, 3));
  auto text = run({program("TERRACE"), "events", "--socket", daemon.socket()});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 3) << text.out;
  EXPECT_TRUE(has_text(text.out, "present host")) << text.out;
  auto json = run({program("TERRACE"), "events", "--json", "--socket", daemon.socket()});
  EXPECT_EQ(std::count(json.out.begin(), json.out.end(), '\n'), 5) << json.out;
  EXPECT_TRUE(has_text(json.out, "\"event\":\"present\"")) << json.out;
}

} // namespace
} // namespace terrace::e2e
