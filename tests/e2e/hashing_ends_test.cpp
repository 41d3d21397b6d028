// Requests that end while their prompt of two million tokens is hashed: by a cancel, with the daemon, or with
// their connection.
#include "long_prompt.hpp"

#include <sys/socket.h>

namespace terrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A time limit far below the seconds that hashing takes.
std::chrono::seconds promptly() {
  return test::sanitized() ? 20s : 3s; // hashing all of it takes far longer with a sanitizer
}

struct HashingEnds : ::testing::Test {
  std::optional<daemon_under_test> daemon;
  std::optional<tester> hashing, other;
  expensive_prompt prompt;
  lookup_id name;
  client::ticket<client::lookup_result> ticket;
  client::ticket<client::lookup_result> waits; ///< the other client's wait for the lookup

  void SetUp() override { name.bytes.fill(5); }

  /// Begins the lookup, which is then being hashed while the other client waits for its answer.
  void begin(const std::string& daemon_section = {}) {
    daemon.emplace(daemon_options{.workers = 1}); // nothing runs beside the hashing
    if (!daemon_section.empty()) {
      daemon->terminate();
      std::string text = read_file(daemon->configuration_path()), section = "[daemon]\n";
      write_file(daemon->configuration_path(),
                 text.insert(text.find(section) + section.size(), daemon_section));
      daemon->start();
    }
    hashing.emplace(daemon->socket(), "hashing", object_bytes, small_blocks());
    other.emplace(daemon->socket(), "other");
    client::lookup_request request{
        .in = hashing->space(), .what = prompt.prefix(), .lease = true, .id = name};
    auto submitted = (*hashing)->async().lookup(request, patiently());
    ASSERT_TRUE(submitted) << submitted.error().text;
    ticket = std::move(*submitted);
    auto waiting = (*other)->async().await_lookup(name, patiently());
    ASSERT_TRUE(waiting) << waiting.error().text;
    waits = std::move(*waiting);
    ASSERT_TRUE(eventually([&] { return in_flight() == 1; }));
  }
  /// Requests in flight of the client that hashes.
  uint32_t in_flight() {
    for (const auto& client : other->status().clients)
      if (client.name == "hashing")
        return client.requests_in_flight;
    return 0;
  }
  bool is_there() {
    for (const auto& client : other->status().clients)
      if (client.name == "hashing")
        return true;
    return false;
  }
  void expect_nothing_left() {
    for (const auto& client : other->status().clients) {
      EXPECT_EQ(client.leases, 0U) << client.name;
      EXPECT_LE(client.requests_in_flight, 1U) << "the status itself";
    }
    EXPECT_EQ(other->tier("host").leased_objects, 0U);
    // The id is free: nobody else has begun it.
    auto again = (*other)->cancel_lookup(name, patiently());
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_FALSE(*again);
  }
};

TEST_F(HashingEnds, ACancelIsAnsweredAndSoIsWhatItCancels) {
  begin();
  auto before = clock::now();
  auto found = ticket.cancel(patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_TRUE(*found);
  auto answer = ticket.wait(patiently());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::cancelled) << answer.error().text;
  auto heard = waits.wait(patiently());
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, errc::cancelled) << heard.error().text;
  EXPECT_LT(clock::now() - before, promptly());
  EXPECT_EQ(in_flight(), 0U);
  expect_nothing_left();
  EXPECT_TRUE((*hashing)->admin().status(patiently())) << "the connection goes on";
}

TEST_F(HashingEnds, ACancelByIdIsAnswered) {
  begin();
  auto before = clock::now();
  auto found = (*other)->cancel_lookup(name, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_TRUE(*found);
  auto answer = ticket.wait(patiently());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::cancelled) << answer.error().text;
  EXPECT_LT(clock::now() - before, promptly());
  auto heard = waits.wait(patiently());
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, errc::cancelled) << heard.error().text;
  expect_nothing_left();
}

TEST_F(HashingEnds, TheEndOfItsConnectionEndsIt) {
  begin();
  auto before = clock::now();
  ::shutdown((*hashing)->descriptor(), SHUT_RDWR);
  auto heard = waits.wait(patiently());
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, errc::gone) << heard.error().text;
  EXPECT_TRUE(eventually([&] { return !is_there(); }));
  EXPECT_LT(clock::now() - before, promptly());
  expect_nothing_left();
}

/// After SIGTERM requests have a while to finish; then they are cancelled.
TEST_F(HashingEnds, AShutdownEndsIt) {
  begin("shutdown_grace = \"100ms\"\n");
  auto before = clock::now();
  EXPECT_EQ(daemon->terminate(), 0) << daemon->log();
  EXPECT_LT(clock::now() - before, promptly());
  auto answer = ticket.wait(patiently());
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().code == errc::cancelled || answer.error().code == errc::gone)
      << answer.error().text;
  EXPECT_NE(daemon->log().find("stopped"), std::string::npos);
}

} // namespace
} // namespace terrace::e2e
