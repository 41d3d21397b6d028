// The promises of the protocol's page about requests, seen from outside.
#include "tests/support/child_process.hpp"
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

TEST(Promises, ALookupNamesTheFirstMissingObject) {
  daemon_under_test daemon;
  auto two_ranks = test_space();
  two_ranks.world_size = 2;
  tester first(daemon.socket(), "rank 0", 8 * object_bytes, two_ranks);
  auto chain = chain_of(1, 3);
  auto found = first.lookup(chain);
  ASSERT_TRUE(found.missing) << "nothing is stored";
  EXPECT_EQ(found.missing->chunk, 0U);
  EXPECT_EQ(found.missing->rank, 0U);
  first.store(chain);
  found = first.lookup(chain);
  EXPECT_EQ(found.found_chunks, 0U) << "all ranks must have stored a chunk";
  ASSERT_TRUE(found.missing);
  EXPECT_EQ(found.missing->chunk, 0U);
  EXPECT_EQ(found.missing->pool, 0U);
  EXPECT_EQ(found.missing->rank, 1U);
  two_ranks.rank = 1;
  tester second(daemon.socket(), "rank 1", 8 * object_bytes, two_ranks);
  second.store({chain[0], chain[1]});
  found = first.lookup(chain);
  EXPECT_EQ(found.found_chunks, 2U);
  ASSERT_TRUE(found.missing);
  EXPECT_EQ(found.missing->chunk, 2U);
  second.store(chain);
  EXPECT_FALSE(first.lookup(chain).missing);
}

TEST(Promises, ALookupReturnsTheDigestsThatItHashed) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  std::vector<uint32_t> tokens(3 * space_chunk_tokens + 5, 7);
  auto request = client.lookup_of({});
  request.what = client::prefix::of_tokens(tokens);
  EXPECT_TRUE(client->lookup(request, patiently())->digests.empty()) << "they were not requested";
  request.digests = true;
  auto hashed = client->lookup(request, patiently());
  ASSERT_TRUE(hashed) << hashed.error().text;
  ASSERT_EQ(hashed->digests.size(), 3U);
  client.store(hashed->digests);
  EXPECT_EQ(client->lookup(request, patiently())->found_chunks, 3U);
}

TEST(Promises, AnErrorNamesTheTraceOfItsRequest) {
  daemon_under_test daemon({.log_level = "trace"});
  tester client(daemon.socket());
  auto chain = chain_of(1, 1);
  auto request = client.lookup_of(chain);
  request.options.trace = "request-4711";
  ASSERT_TRUE(client->lookup(request, patiently()));
  EXPECT_TRUE(daemon.await_log("(trace request-4711)"));
  std::vector<uint32_t> tokens(64, 1);
  std::array<uint8_t, 32> parent{};
  request.what = client::prefix::of_tokens(tokens);
  request.what.parent = parent;
  request.what.parent_tokens = 5; // not a whole number of chunks
  auto refused = client->lookup(request, patiently());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("(trace request-4711)"), std::string::npos) << refused.error().text;
}

TEST(Promises, AnErrorNamesTheTraceAlsoWhenNothingOfThatNameExists) {
  daemon_under_test daemon;
  test::raw_client client(daemon.socket());
  ASSERT_TRUE(client.greet());
  using flatbuffers::FlatBufferBuilder;
  auto traced = [](FlatBufferBuilder& body) { return wire::CreateOptionsDirect(body, 128, "request-4711"); };
  auto one_digest = [](FlatBufferBuilder& body) {
    return wire::CreatePrefix(body, 0, 0, 0, body.CreateVector(std::vector<uint8_t>(32, 1)));
  };
  auto expect_trace = [&](errc code) {
    auto said = client.receive();
    ASSERT_TRUE(said);
    EXPECT_EQ(said->code(), code);
    EXPECT_NE(said->text().find("(trace request-4711)"), std::string::npos) << said->text();
  };
  client.send(protocol::kind::lookup, 2, [&](FlatBufferBuilder& body) {
    auto what = one_digest(body);
    return wire::CreateLookup(body, 77, what, false, 0, 0, traced(body));
  });
  expect_trace(errc::not_found);
  client.send(protocol::kind::load, 3, [&](FlatBufferBuilder& body) {
    auto runs = protocol::create_structs(body, std::vector<wire::Run>());
    auto what = one_digest(body);
    return wire::CreateLoad(body, 77, what, 0, 0, 0, 77, runs, 0, 0, traced(body));
  });
  expect_trace(errc::not_found);
  client.send(protocol::kind::store, 4, [&](FlatBufferBuilder& body) {
    auto runs = protocol::create_structs(body, std::vector<wire::Run>());
    auto what = one_digest(body);
    return wire::CreateStore(body, 77, what, 0, 0, 77, runs, 0, 0, traced(body));
  });
  expect_trace(errc::not_found);
  client.send(protocol::kind::reserve, 5, [&](FlatBufferBuilder& body) {
    auto what = one_digest(body);
    return wire::CreateReserve(body, 77, what, 0, 0, 0, traced(body));
  });
  expect_trace(errc::not_found);
  client.send(protocol::kind::commit, 6,
              [&](FlatBufferBuilder& body) { return wire::CreateCommit(body, 77, 0, traced(body)); });
  expect_trace(errc::not_found);
}

TEST(Promises, RequestsOnLeasesNamesAndReservationsHaveOptionsToo) {
  daemon_under_test daemon({.log_level = "trace"});
  tester client(daemon.socket());
  auto chain = chain_of(1, 1);
  lease_id nobodys;
  nobodys.bytes.fill(1);
  auto read =
      client->read_lease(nobodys, {}, patiently(), {}, client::earlier_places::kept, {.trace = "read-1"});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("(trace read-1)"), std::string::npos) << read.error().text;
  auto request = client.lookup_of(chain);
  request.id = lookup_id{};
  request.id->bytes.fill(2);
  auto waiting = client->async().await_lookup(*request.id, patiently(), {.trace = "await-2"});
  ASSERT_TRUE(waiting);
  request.digests = true;
  auto hashed = client->lookup(request, patiently());
  ASSERT_TRUE(hashed);
  EXPECT_EQ(hashed->digest_width, digest::max_size);
  auto told = waiting->wait(patiently());
  ASSERT_TRUE(told);
  EXPECT_EQ(told->chunk_tokens, space_chunk_tokens);
  EXPECT_TRUE(daemon.await_log("(trace await-2)"));
  auto made = client->reserve({.in = client.space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_TRUE(made);
  EXPECT_TRUE(client->commit(std::move(*made), patiently(), {.trace = "commit-3"}));
  EXPECT_TRUE(daemon.await_log("(trace commit-3)"));
}

TEST(Promises, TheLogLevelDebugHasALinePerConnectionAndLease) {
  daemon_under_test daemon({.log_level = "debug"});
  {
    tester client(daemon.socket(), "curious");
    client.store(chain_of(1, 2));
    client.lookup(chain_of(1, 2), true);
  }
  EXPECT_TRUE(daemon.await_log("(curious, pid"));
  EXPECT_TRUE(daemon.await_log("takes a lease on 2 chunks"));
  EXPECT_TRUE(daemon.await_log("has ended"));
  EXPECT_FALSE(daemon.has_logged("answered ok")) << "that is the level trace";
}

TEST(Promises, AReaderOfAForeignLeaseIsAHolder) {
  daemon_under_test daemon;
  tester owner(daemon.socket(), "owner");
  tester reader(daemon.socket(), "reader");
  auto chain = chain_of(1, 2);
  owner.store(chain);
  auto found = owner.lookup(chain, true);
  auto id = found.held.id();
  ASSERT_TRUE(reader->read_lease(id, {}, patiently()));
  found.held.release();
  owner.status();
  auto again = reader->read_lease(id, {}, patiently());
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_TRUE(has_content(chain[1], again->objects[1]));
}

TEST(Promises, NamesCannotForgeLinesOfStatus) {
  daemon_under_test daemon;
  tester evil(daemon.socket(), "x\n  everything is fine\x1b[31m");
  auto status = run({program("TERRACE"), "status", "--socket", daemon.socket()});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(status.out.find("\n  everything"), std::string::npos) << status.out;
  EXPECT_EQ(status.out.find('\x1b'), std::string::npos);
  EXPECT_NE(status.out.find("x\\x0a  everything"), std::string::npos) << status.out; // cut to its column
  test::raw_client latin(daemon.socket());
  latin.send(protocol::kind::hello, 1, [](auto& body) {
    return wire::CreateHello(body, protocol::version, body.CreateString("caf\xe9"));
  });
  auto said = latin.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_NE(said->text().find("UTF-8"), std::string::npos) << said->text();
}

TEST(Promises, AFullConnectionTableDoesNotAdviseToStartADaemon) {
  daemon_under_test daemon({.connection = "connections_max = 1\n"});
  tester first(daemon.socket());
  // A command that is a client. Commands that only look are let in. The daemon may close before or after the
  // hello.
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto set = run({program("TERRACE"), "policies", "set", "host", "lru", "--socket", daemon.socket()});
    EXPECT_NE(set.exit_code, 0);
    EXPECT_NE(set.err.find("connection.connections_max"), std::string::npos) << set.err;
    EXPECT_EQ(set.err.find("Start one"), std::string::npos) << set.err;
  }
}

TEST(Promises, TheLineForEachEndedConnectionIsLimitedInRate) {
  daemon_under_test daemon;
  for (int i = 0; i < 200; ++i) {
    test::raw_client offender(daemon.socket());
    offender.send(test::status_frame(1)); // before hello
    offender.receive();
  }
  EXPECT_EQ(daemon.terminate(), 0);
  size_t lines = 0;
  for (size_t at = 0; (at = daemon.log().find(" ends: ", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_GT(lines, 0U);
  EXPECT_LT(lines, 100U);
}

TEST(Promises, ClearNeedsTheRightThatChangingAPolicyNeeds) {
  if (::getuid() != 0)
    GTEST_SKIP() << "needs the right to change users";
  daemon_options open;
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  std::string socket = folder / "open.sock";
  open.listen = "[[listen]]\npath = \"" + socket + "\"\nmode = \"0666\"\nuids = [0, 65534]\n";
  daemon_under_test daemon(open);
  tester owner(socket);
  auto chain = chain_of(1, 1);
  owner.store(chain);
  child_process user([&](const child_voice&) {
    if (::setuid(65534) != 0)
      return 2;
    auto connected = client::connection::connect({.path = socket}, patiently());
    if (!connected)
      return 3;
    auto cleared = connected->admin().clear(nullptr, patiently());
    return !cleared && cleared.error().code == errc::denied ? 0 : 1;
  });
  EXPECT_EQ(user.wait(), 0);
  EXPECT_EQ(owner.lookup(chain).found_chunks, 1U);
}

TEST(Promises, DescriptorsThatCannotServeAreRefusedByName) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  unique_fd memory(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  for (auto [flags, name] : {std::pair{O_RDONLY, "O_RDONLY"}, {O_RDWR | O_APPEND, "O_APPEND"}}) {
    unique_fd other(::open(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), flags | O_CLOEXEC));
    auto refused = client->register_region(other.get(), 4096, patiently());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find(name), std::string::npos) << refused.error().text;
  }
}

TEST(Promises, ReservationsOfPresentChunksHaveABoundAndBelongToTheirConnection) {
  daemon_under_test daemon({.connection = "group_bytes = \"16MiB\"\n"}); // 64 reservations
  tester client(daemon.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  client::reserve_request request;
  request.in = client.space();
  request.what = client::prefix::of_digests(chain);
  std::vector<client::reservation> kept;
  for (int i = 0; i < 64; ++i) {
    auto reserved = client->reserve(request, patiently());
    ASSERT_TRUE(reserved) << reserved.error().text;
    kept.push_back(std::move(*reserved));
  }
  auto refused = client->reserve(request, patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("connection.group_bytes"), std::string::npos) << refused.error().text;
  test::raw_client other(daemon.socket());
  ASSERT_TRUE(other.greet());
  other.send(protocol::kind::commit, 2, [](auto& body) { return wire::CreateCommit(body, 1); });
  EXPECT_EQ(other.receive()->code(), errc::not_found);
  kept.pop_back();
  EXPECT_TRUE(client->reserve(request, patiently()));
}

TEST(Promises, ALoadNamesTheDamagedObjectThatEndedIt) {
  temporary_folder state;
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 4);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  // Flips bytes of the third chunk's payload wherever the file has it.
  std::vector<uint8_t> wanted(object_bytes);
  fill_content(chain[2], wanted);
  unique_fd file(::open((state.path() + "/terrace.extents").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file);
  auto size = static_cast<size_t>(::lseek(file.get(), 0, SEEK_END));
  bool flipped = false;
  std::vector<uint8_t> page(4096);
  for (size_t at = 0; at + page.size() <= size && !flipped; at += page.size()) {
    ASSERT_EQ(::pread(file.get(), page.data(), page.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(page.size()));
    if (std::equal(page.begin(), page.end(), wanted.begin())) {
      page[17] = static_cast<uint8_t>(page[17] ^ 1U);
      ASSERT_EQ(::pwrite(file.get(), page.data(), page.size(), static_cast<off_t>(at)),
                static_cast<ssize_t>(page.size()));
      flipped = true;
    }
  }
  ASSERT_TRUE(flipped);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto found = client.lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 4U);
  auto load = client.load_of(chain);
  load.what = {};
  load.lease = found.held.id();
  auto loaded = client->load(load, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 2U);
  ASSERT_TRUE(loaded->missing) << "it ended early without a word";
  EXPECT_EQ(loaded->missing->chunk, 2U);
  EXPECT_EQ(loaded->missing->pool, 0U);
  EXPECT_TRUE(loaded->missing->damaged);
}

} // namespace
} // namespace terrace::e2e
