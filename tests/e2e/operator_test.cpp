// What operators see and end: leases, clients, the log level, the daemon itself.
#include "command_line.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace terrace::e2e {
namespace operator_test {

using json = nlohmann::json;
using test::child_process;
using test::child_voice;

constexpr uint64_t host_objects = 31; // in the default 32 MiB

std::string text_of(const lease_id& id) {
  std::string text;
  for (uint8_t byte : id.bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

json client_named(const daemon_under_test& daemon, const std::string& name) {
  json all = answer_of(daemon, {"clients"});
  for (const json& one : all["clients"])
    if (one["name"] == name)
      return one;
  return {};
}

class Operator : public ::testing::Test {
 protected:
  daemon_under_test daemon_;
};

TEST_F(Operator, LeasesAreListedWithOwnerAgeAndBytes) {
  tester first(daemon_.socket(), "first"), second(daemon_.socket(), "second");
  auto chain = chain_of(1, 4);
  first.store(chain);
  auto older = first.lookup(chain, true);
  auto younger = second.lookup({chain.begin(), chain.begin() + 2}, true);
  json listed;
  EXPECT_TRUE(eventually([&] {
    listed = answer_of(daemon_, {"leases"});
    return listed["leases"].at(0)["age_ms"] >= 2;
  })) << "leases age";
  EXPECT_EQ(listed["count"], 2);
  ASSERT_EQ(listed["leases"].size(), 2U);
  const json& one = listed["leases"][0];
  EXPECT_EQ(one["lease"], text_of(older.held.id())) << "the oldest comes first";
  EXPECT_EQ(one["name"], "first");
  EXPECT_EQ(one["connection"], static_cast<uint64_t>(first->daemon().connection));
  EXPECT_EQ(one["chunks"], 4);
  EXPECT_EQ(one["tokens"], 4 * space_chunk_tokens);
  EXPECT_GE(one["bytes"], 4 * object_bytes);
  EXPECT_LT(one["bytes"], 5 * object_bytes);
  EXPECT_EQ(one["revoked"], false);
  EXPECT_EQ(listed["leases"][1]["chunks"], 2);

  auto limited = answer_of(daemon_, {"leases", "--limit", "1"});
  EXPECT_EQ(limited["count"], 2);
  EXPECT_EQ(limited["leases"].size(), 1U);
  auto text = terrace(daemon_, {"leases"});
  EXPECT_NE(text.out.find(text_of(younger.held.id())), std::string::npos) << text.out;

  older.held.release();
  EXPECT_TRUE(eventually([&] { return answer_of(daemon_, {"leases"})["count"] == 1; }));
}

TEST_F(Operator, LongListsOfLeasesComeInParts) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 1);
  client.store(chain);
  std::vector<client::lease> held;
  for (int i = 0; i < 1'500; ++i)
    held.push_back(std::move(client.lookup(chain, true).held));
  auto part = client->admin().leases(0, patiently());
  ASSERT_TRUE(part) << part.error().text;
  EXPECT_EQ(part->count, 1'500U);
  ASSERT_EQ(part->leases.size(), 1'024U);
  auto rest = client->admin().leases(part->leases.back().number, patiently());
  ASSERT_TRUE(rest) << rest.error().text;
  EXPECT_EQ(rest->leases.size(), 1'500U - 1'024U);
  EXPECT_EQ(rest->leases.back().lease, held.back().id());
  EXPECT_EQ(answer_of(daemon_, {"leases", "--limit", "2000"})["leases"].size(), 1'500U);
}

TEST_F(Operator, ARevokedLeaseIsGoneForItsOwnerAndHoldsNothing) {
  tester client(daemon_.socket(), "holder");
  auto chain = chain_of(1, 4);
  client.store(chain);
  auto found = client.lookup(chain, true);
  auto revoked = answer_of(daemon_, {"lease", "revoke", text_of(found.held.id())});
  EXPECT_EQ(revoked["holders"], 1);
  EXPECT_EQ(revoked["quarantined_bytes"], 0) << "nothing was read in place";
  auto places = client->read_lease(found.held.id(), {}, patiently());
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, errc::gone);
  auto request = client.load_of(chain);
  request.what = {};
  request.lease = found.held.id();
  auto loaded = client->load(request, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone);
  EXPECT_EQ(answer_of(daemon_, {"leases"})["count"], 0);
  occupy(client, 100, host_objects); // all of host memory
  EXPECT_TRUE(daemon_.await_log("revoked by an operator"));
}

TEST_F(Operator, WhatIsReadUnderARevokedLeaseStaysUntilItIsReleased) {
  tester owner(daemon_.socket(), "owner"), reader(daemon_.socket(), "reader");
  auto chain = chain_of(1, 4);
  owner.store(chain);
  auto found = owner.lookup(chain, true);
  auto places = reader->read_lease(found.held.id(), {0, 2}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  auto revoked = reader->admin().revoke(found.held.id(), patiently());
  ASSERT_TRUE(revoked) << revoked.error().text;
  EXPECT_EQ(revoked->holders, 2U);
  EXPECT_GE(revoked->quarantined_bytes, 2 * object_bytes);
  EXPECT_LT(revoked->quarantined_bytes, 3 * object_bytes);
  EXPECT_EQ(client_named(daemon_, "reader")["quarantined_bytes"], revoked->quarantined_bytes);
  EXPECT_EQ(client_named(daemon_, "owner")["quarantined_bytes"], 0);
  auto more = reader->read_lease(found.held.id(), {2, 2}, patiently());
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, errc::gone);

  for (uint64_t i = 0; i < 3 * host_objects; ++i)
    owner.store(chain_of(100 + i, 1));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i])) << "what it has mapped is not reused";
  EXPECT_EQ(owner.lookup(chain).found_chunks, 2U) << "the rest could be evicted";

  reader->adopt(found.held.id()).release(); // the reader has finished
  EXPECT_TRUE(eventually([&] { return client_named(daemon_, "reader")["quarantined_bytes"] == 0; }));
  occupy(owner, 1000, host_objects);
}

TEST_F(Operator, WhatIsReadUnderARevokedLeaseStaysUntilItsProcessEnds) {
  auto chain = chain_of(1, 4);
  child_process reader([&](const child_voice& voice) {
    tester client(daemon_.socket(), "reader");
    client.store(chain);
    auto found = client.lookup(chain, true);
    auto places = client->read_lease(found.held.id(), {}, patiently());
    voice.say(places ? 'r' : 'x');
    voice.stay();
    return 0;
  });
  ASSERT_EQ(reader.await_word(), 'r');
  tester operating(daemon_.socket(), "operator");
  auto listed = operating->admin().leases(0, patiently());
  ASSERT_TRUE(listed && listed->leases.size() == 1);
  auto revoked = operating->admin().revoke(listed->leases[0].lease, patiently());
  ASSERT_TRUE(revoked) << revoked.error().text;
  EXPECT_GE(revoked->quarantined_bytes, 4 * object_bytes);
  EXPECT_EQ(leased_objects(operating, 4), 4U);
  reader.kill();
  EXPECT_EQ(leased_objects(operating, 0), 0U);
  occupy(operating, 100, host_objects);
}

/// Returns the words that name the testers' space, and a prompt of these chunks.
std::vector<std::string> prompt_words(const std::vector<digest>& chain) {
  std::string digests;
  for (const digest& one : chain)
    digests += (digests.empty() ? "" : ",") + to_hex(one);
  return {"--model", "test",    "--dtype",        "u8", "--layout",  "opaque",
          "--pool",  "kv:1MiB", "--chunk-tokens", "16", "--digests", digests};
}

std::vector<std::string> words_of(std::vector<std::string> first, const std::vector<digest>& chain) {
  for (const std::string& word : prompt_words(chain))
    first.push_back(word);
  return first;
}

TEST_F(Operator, APinnedPromptStaysUntilItIsUnpinned) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 4), longer = chain;
  auto more = chain_of(2, 2);
  longer.insert(longer.end(), more.begin(), more.end());
  client.store(chain);
  auto pinned = answer_of(daemon_, words_of({"pin"}, longer));
  EXPECT_EQ(pinned["requested_chunks"], 6);
  EXPECT_EQ(pinned["pinned_chunks"], 4);
  EXPECT_EQ(pinned["tokens"], 4 * space_chunk_tokens);
  EXPECT_GE(pinned["bytes"], 4 * object_bytes);
  auto listed = answer_of(daemon_, {"leases"});
  ASSERT_EQ(listed["leases"].size(), 1U);
  EXPECT_EQ(listed["leases"][0]["pinned"], true);
  EXPECT_EQ(listed["leases"][0]["lease"], pinned["lease"]);
  for (uint64_t i = 0; i < 3 * host_objects; ++i)
    client.store(chain_of(100 + i, 1));
  EXPECT_EQ(client.load_and_check(chain), 4U) << "the connection that pinned it has ended";

  EXPECT_EQ(answer_of(daemon_, words_of({"unpin"}, chain))["pins"], 0) << "another prompt was pinned";
  auto unpinned = answer_of(daemon_, words_of({"unpin"}, longer));
  EXPECT_EQ(unpinned["pins"], 1);
  EXPECT_EQ(unpinned["bytes"], pinned["bytes"]);
  EXPECT_EQ(answer_of(daemon_, {"leases"})["count"], 0);
  occupy(client, 1000, host_objects);
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
}

TEST_F(Operator, APinMayBeRevokedAndReplaced) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 2);
  auto none = answer_of(daemon_, words_of({"pin"}, chain));
  EXPECT_EQ(none["pinned_chunks"], 0);
  EXPECT_EQ(none["lease"], "");
  client.store(chain);
  auto first = answer_of(daemon_, words_of({"pin"}, chain)),
       second = answer_of(daemon_, words_of({"pin"}, chain));
  EXPECT_NE(first["lease"], second["lease"]);
  EXPECT_EQ(answer_of(daemon_, {"leases"})["count"], 1) << "a prompt has one pin";
  auto revoked = answer_of(daemon_, {"lease", "revoke", second["lease"]});
  EXPECT_EQ(revoked["holders"], 0);
  EXPECT_EQ(answer_of(daemon_, {"leases"})["count"], 0);
  occupy(client, 1000, host_objects);
}

TEST_F(Operator, PinsHaveABoundThatTheErrorNames) {
  tester client(daemon_.socket(), "client", 16 * object_bytes);
  auto chain = chain_of(1, 9); // a quarter of 32 MiB is 8 objects
  client.store(chain);
  auto refused = terrace(daemon_, words_of({"pin"}, chain));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("lease.pin_percent"), std::string::npos) << refused.err;
  EXPECT_EQ(answer_of(daemon_, {"leases"})["count"], 0);
  auto no_chunk = terrace(daemon_, {"pin", "--model", "test", "--dtype", "u8", "--layout", "opaque", "--pool",
                                    "kv:1MiB", "--chunk-tokens", "16", "--tokens", "1 2 3"});
  EXPECT_EQ(no_chunk.exit_code, 1);
  EXPECT_NE(no_chunk.err.find("at least one whole chunk"), std::string::npos) << no_chunk.err;
}

TEST_F(Operator, AnEvictedPromptIsNotFoundAndOthersAre) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  client.store(chain);
  client.store(other);
  std::vector<digest> first(chain.begin(), chain.begin() + 2);
  auto held = client.lookup(first, true);
  auto places = client->read_lease(held.held.id(), {}, patiently());
  ASSERT_TRUE(places);
  auto evicted = answer_of(daemon_, words_of({"evict"}, chain));
  EXPECT_EQ(evicted["objects"], 4);
  EXPECT_GE(evicted["bytes"], 4 * object_bytes);
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.load_and_check(other), 4U);
  EXPECT_TRUE(has_content(chain[0], places->objects[0])) << "whoever holds it may read it";
  EXPECT_EQ(client.tier("host").errors, 0U) << "nothing was wrong with it";
  EXPECT_EQ(answer_of(daemon_, words_of({"evict"}, chain))["objects"], 0);
  EXPECT_EQ(client.store(chain), 4U) << "it may be stored again";
}

TEST(OperatorDisk, EvictsFromOneTierOrAll) {
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_disk).found_chunks == 4; }));
  EXPECT_EQ(answer_of(daemon, words_of({"evict", "--tier", "host"}, chain))["objects"], 4);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U);
  EXPECT_EQ(client.load_and_check(chain), 4U) << "from the disk";
  EXPECT_EQ(answer_of(daemon, words_of({"evict"}, chain))["objects"], 8);
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester later(daemon.socket());
  EXPECT_EQ(later.lookup(chain).found_chunks, 0U) << "also after a restart";
}

TEST_F(Operator, AnUnknownLeaseIsAnError) {
  auto unknown = terrace(daemon_, {"lease", "revoke", std::string(32, 'a')});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("no such lease"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("not_found"), std::string::npos) << unknown.err;
  auto no_id = terrace(daemon_, {"lease", "revoke", "abc"});
  EXPECT_EQ(no_id.exit_code, 2);
  EXPECT_NE(no_id.err.find("hexadecimal"), std::string::npos) << no_id.err;
  for (const auto& refused : {unknown, no_id, terrace(daemon_, {"lease", "revoke", "99999"})})
    EXPECT_NE(refused.err.find("`terrace leases` lists the ids"), std::string::npos) << refused.err;
}

TEST_F(Operator, ClientsAreShownWithWhatTheyHoldAndHowLongTheyWait) {
  tester client(daemon_.socket(), "an-engine");
  auto chain = chain_of(1, 4);
  client.store(chain);
  auto found = client.lookup(chain, true);
  auto one = client_named(daemon_, "an-engine");
  EXPECT_EQ(one["pid"], ::getpid());
  EXPECT_EQ(one["state"], "serving");
  EXPECT_EQ(one["leases"], 1);
  EXPECT_GE(one["leased_bytes"], 4 * object_bytes);
  EXPECT_GE(one["answered"], 4) << "hello, a space, a region, a store and a lookup";
  EXPECT_GT(one["latency_us"], 0);
  auto text = terrace(daemon_, {"clients"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("an-engine"), std::string::npos) << text.out;
}

TEST_F(Operator, TopShowsRatesAndClients) {
  tester client(daemon_.socket(), "an-engine");
  auto top = terrace(daemon_, {"top", "--interval", "0.1", "--count", "2"});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_NE(top.out.find("an-engine"), std::string::npos) << top.out;
  EXPECT_NE(top.out.find("host"), std::string::npos) << top.out;
  EXPECT_EQ(top.out.find('\x1b'), std::string::npos) << "nothing is redrawn where there is no terminal";
}

TEST_F(Operator, TopIsRedrawnInPlaceOnATerminal) {
  std::string command = program("TERRACE");
  int terminal = -1;
  pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0)
    GTEST_SKIP() << "expected a pseudo-terminal: " << std::strerror(errno) << " (is /dev/pts mounted?)";
  if (child == 0) {
    std::string socket = daemon_.socket();
    ::execl(command.c_str(), command.c_str(), "top", "--interval", "0.1", "--count", "2", "--socket",
            socket.c_str(), nullptr);
    ::_exit(127);
  }
  unique_fd shown_on(terminal);
  std::string shown;
  char piece[4096];
  for (ssize_t n; (n = ::read(terminal, piece, sizeof piece)) > 0;) // fails when the program has ended
    shown.append(piece, static_cast<size_t>(n));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << shown;
  size_t drawn = 0;
  for (size_t at = shown.find("\x1b[H"); at != std::string::npos; at = shown.find("\x1b[H", at + 1))
    ++drawn;
  EXPECT_EQ(drawn, 2U) << shown;
  EXPECT_NE(shown.find("host"), std::string::npos) << shown;
}

TEST_F(Operator, TheLogLevelIsChangedAtRunTime) {
  { tester quiet(daemon_.socket(), "quiet"); }
  auto set = answer_of(daemon_, {"log-level", "debug"});
  EXPECT_EQ(set["before"], "info");
  EXPECT_TRUE(daemon_.await_log("daemon.log_level: \"info\" -> \"debug\""));
  EXPECT_EQ(daemon_.log().find("quiet"), std::string::npos);
  { tester shown(daemon_.socket(), "shown"); }
  EXPECT_TRUE(daemon_.await_log("shown"));
  auto unknown = terrace(daemon_, {"log-level", "loud"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("trace, debug, info, warning, error"), std::string::npos) << unknown.err;
}

TEST_F(Operator, ShutdownEndsTheDaemonInOrder) {
  tester client(daemon_.socket(), "client");
  auto done = answer_of(daemon_, {"shutdown"});
  EXPECT_EQ(done["clients"], 1);
  EXPECT_EQ(daemon_.wait(), 0);
  EXPECT_NE(daemon_.log().find("stopped"), std::string::npos);
}

TEST_F(Operator, DrainServesTheClientsThatThereAreAndEndsWithTheLast) {
  std::optional<tester> client;
  client.emplace(daemon_.socket(), "client");
  EXPECT_EQ(answer_of(daemon_, {"drain"})["clients"], 1);
  auto refused = client::connection::connect({.path = daemon_.socket(), .name = "late"}, patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("drains"), std::string::npos) << refused.error().text;
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client->store(chain), 4U);
  EXPECT_EQ(client->load_and_check(chain), 4U);
  EXPECT_EQ(terrace(daemon_, {"status"}).exit_code, 0) << "whoever only looks is admitted";
  client.reset();
  EXPECT_EQ(daemon_.wait(), 0);
}

TEST_F(Operator, DrainWithoutClientsEndsTheDaemonAtOnce) {
  EXPECT_EQ(answer_of(daemon_, {"drain"})["clients"], 0);
  EXPECT_EQ(daemon_.wait(), 0);
}

TEST(OperatorRights, OtherUsersAreDeniedByName) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can run a client as another user";
  daemon_options open;
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  std::string socket = folder / "open.sock";
  open.listen = "[[listen]]\npath = \"" + socket + "\"\nmode = \"0666\"\nuids = [0, 65534]\n";
  daemon_under_test daemon(open);
  tester owner(socket);
  auto chain = chain_of(1, 1);
  owner.store(chain);
  auto found = owner.lookup(chain, true);
  lease_id id = found.held.id();
  child_process user([&](const child_voice&) {
    if (::setuid(65534) != 0)
      return 2;
    auto connected = client::connection::connect({.path = socket}, patiently());
    if (!connected)
      return 3;
    auto space = connected->open_space(test_space(), patiently());
    if (!space)
      return 4;
    client::prompt_request prompt{*space, client::prefix::of_digests(chain), 0, {}};
    auto denied = [](const auto& answer) {
      return !answer && answer.error().code == errc::denied &&
             answer.error().text.find("expected the daemon's own user or root") != std::string::npos;
    };
    return denied(connected->admin().leases(0, patiently())) &&
                   denied(connected->admin().revoke(id, patiently())) &&
                   denied(connected->admin().set_log_level("trace", patiently())) &&
                   denied(connected->admin().check(patiently())) &&
                   denied(connected->admin().shut_down(true, patiently())) &&
                   denied(connected->admin().pin(prompt, patiently())) &&
                   denied(connected->admin().unpin(prompt, patiently())) &&
                   denied(connected->admin().evict(prompt, patiently()))
               ? 0
               : 1;
  });
  EXPECT_EQ(user.wait(), 0);
  EXPECT_TRUE(owner->read_lease(id, {}, patiently()));
}

TEST(OperatorMetrics, RevokedLeasesAndWhatTheyLeaveAreCounted) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.metrics = "127.0.0.1:" + std::to_string(port)});
  tester client(daemon.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  auto found = client.lookup(chain, true);
  ASSERT_TRUE(client->read_lease(found.held.id(), {}, patiently()));
  auto revoked = client->admin().revoke(found.held.id(), patiently());
  ASSERT_TRUE(revoked) << revoked.error().text;
  std::string text = test::scrape(port);
  auto has = [&](const std::string& line) { return text.find(line + "\n") != std::string::npos; };
  EXPECT_TRUE(has("terrace_leases_revoked_total{group=\"default\"} 1")) << text;
  EXPECT_TRUE(has("terrace_leases{group=\"default\"} 0")) << text;
  EXPECT_TRUE(
      has("terrace_quarantined_bytes{group=\"default\"} " + std::to_string(revoked->quarantined_bytes)))
      << text;
  client::prompt_request prompt{client.space(), client::prefix::of_digests(chain), 0, {}};
  auto pinned = client->admin().pin(prompt, patiently());
  ASSERT_TRUE(pinned) << pinned.error().text;
  found.held.release();
  ASSERT_TRUE(eventually([&] { return client.status().clients.at(0).quarantined_bytes == 0; }));
  text = test::scrape(port);
  EXPECT_TRUE(has("terrace_quarantined_bytes{group=\"default\"} 0")) << text;
  EXPECT_TRUE(has("terrace_pins{group=\"default\"} 1")) << text;
  EXPECT_TRUE(has("terrace_pinned_bytes{group=\"default\"} " + std::to_string(pinned->bytes))) << text;
}

} // namespace operator_test
} // namespace terrace::e2e
