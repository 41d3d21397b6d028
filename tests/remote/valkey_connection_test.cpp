// A connection to a server that is played: what is sent, what each reply means, and replies that no server should send.
#include "remote/valkey_connection.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace terrace::remote {
namespace {

using enum command_result;
using bytes = std::vector<std::byte>;

/// Takes all that is to be sent.
std::string sent(valkey_connection& server) {
  std::string all;
  while (!server.outgoing().empty()) {
    auto part = server.outgoing().begin();
    for (const iovec& area : part.areas)
      all.append(static_cast<const char*>(area.iov_base), area.iov_len);
    server.outgoing().sent(part.bytes);
  }
  return all;
}

std::string words(std::initializer_list<std::string_view> all) {
  std::string text;
  resp::append_array_head(text, all.size());
  for (auto word : all)
    resp::append_value(text, word);
  return text;
}

/// Gives the bytes to the connection in pieces of at most this size.
result<void> receive(valkey_connection& server, std::string_view stream, size_t piece = SIZE_MAX) {
  while (!stream.empty()) {
    auto area = server.receive_area();
    EXPECT_FALSE(area.empty());
    size_t count = std::min({area.size(), stream.size(), piece});
    std::memcpy(area.data(), stream.data(), count);
    stream.remove_prefix(count);
    if (auto taken = server.received(count); !taken)
      return taken;
  }
  return {};
}

/// A connection that is ready.
class played_server : public valkey_connection {
 public:
  played_server() : valkey_connection(store_login{}) {
    EXPECT_TRUE(receive(*this, "%1\r\n+proto\r\n:3\r\n"));
    EXPECT_TRUE(ready());
    sent(*this);
  }
};

finished_command finished_of(valkey_connection& server) {
  auto finished = server.next_finished();
  EXPECT_TRUE(finished);
  return finished.value_or(finished_command{});
}

// ---- what the server tells of itself and of its keys ----

TEST(ValkeyTells, IsKnownByNameAndVersion) {
  valkey_connection server({});
  ASSERT_TRUE(
      receive(server,
              "%4\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.0.1\r\n$5\r\nproto\r\n:3\r\n"
              "$7\r\nmodules\r\n*1\r\n%1\r\n$7\r\nversion\r\n:7\r\n",
              1));
  EXPECT_TRUE(server.ready());
  EXPECT_EQ(server.server_name(), "valkey");
  EXPECT_EQ(server.server_version(), "9.0.1") << "not that of a module";
}

TEST(ValkeyTells, TellsWhatItHas) {
  played_server server;
  server.info(1, "memory");
  server.length(2, "k");
  EXPECT_EQ(sent(server), words({"INFO", "memory"}) + words({"STRLEN", "k"}));
  ASSERT_TRUE(receive(server, "=15\r\ntxt:used_mem:7\n\r\n:4096\r\n", 2));
  auto told = finished_of(server);
  EXPECT_EQ(told.result, done);
  EXPECT_EQ(told.text, "txt:used_mem:7\n");
  auto length = finished_of(server);
  EXPECT_EQ(length.result, done);
  EXPECT_EQ(length.number, 4096);
}

TEST(ValkeyTells, ListsKeysPageByPage) {
  played_server server;
  server.scan(1, "0", "t/*", 10);
  server.scan(2, "7", "t/*", 10);
  server.scan(3, "8", "t/*", 10);
  EXPECT_TRUE(sent(server).starts_with(words({"SCAN", "0", "MATCH", "t/*", "COUNT", "10"})));
  std::string large(5'000, 'x');
  ASSERT_TRUE(receive(server,
                      "*2\r\n$1\r\n7\r\n*3\r\n$3\r\nt/a\r\n$5000\r\n" + large +
                          "\r\n$3\r\nt/b\r\n"
                          "*2\r\n$1\r\n0\r\n*0\r\n"
                          "-NOPERM no\r\n",
                      11));
  auto first = finished_of(server);
  EXPECT_EQ(first.result, done);
  EXPECT_EQ(first.text, "7");
  EXPECT_EQ(first.keys, (std::vector<std::string>{"t/a", "t/b"})) << "longer ones are nobody's of ours";
  auto second = finished_of(server);
  EXPECT_EQ(second.tag, 2U);
  EXPECT_EQ(second.text, "0");
  EXPECT_TRUE(second.keys.empty());
  auto third = finished_of(server);
  EXPECT_EQ(third.result, refused);
  EXPECT_NE(third.why.text.find("SCAN"), std::string::npos) << third.why.text;
}

TEST(ValkeyTells, TellsWhereAPrimaryIs) {
  played_server server;
  for (uint64_t tag = 1; tag <= 4; ++tag)
    server.primary(tag, "kv");
  EXPECT_TRUE(sent(server).starts_with(words({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "kv"})));
  ASSERT_TRUE(receive(server,
                      "*2\r\n$8\r\n10.0.0.7\r\n$4\r\n6379\r\n"
                      "*2\r\n$7\r\nfd00::7\r\n$4\r\n6380\r\n"
                      "_\r\n"
                      "-ERR unknown command\r\n",
                      3));
  auto first = finished_of(server), second = finished_of(server);
  EXPECT_EQ(first.result, done);
  EXPECT_EQ(first.text, "10.0.0.7:6379");
  EXPECT_EQ(second.tag, 2U);
  EXPECT_EQ(second.text, "[fd00::7]:6380");
  EXPECT_EQ(finished_of(server).result, absent);
  EXPECT_EQ(finished_of(server).result, refused);
}

TEST(ValkeyTells, TellsWhoHasWhichSlots) {
  played_server server;
  for (uint64_t tag = 1; tag <= 3; ++tag)
    server.slots(tag);
  EXPECT_TRUE(sent(server).starts_with(words({"CLUSTER", "SLOTS"})));
  const std::string replica = "*4\r\n$8\r\n10.0.0.9\r\n:7000\r\n$2\r\nid\r\n*0\r\n";
  ASSERT_TRUE(receive(
      server,
      "*3\r\n"
      "*4\r\n:0\r\n:99\r\n*4\r\n$8\r\n10.0.0.7\r\n:6379\r\n$2\r\nid\r\n*0\r\n" +
          replica +
          "*3\r\n:100\r\n:200\r\n*4\r\n_\r\n:6380\r\n$2\r\nid\r\n%1\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
          "*3\r\n:300\r\n:16383\r\n*4\r\n$1\r\nh\r\n:6381\r\n$2\r\nid\r\n*2\r\n$2\r\nip\r\n$7\r\nfd00::7\r\n"
          "*0\r\n"
          "-ERR This instance has cluster support disabled\r\n",
      5));
  auto told = finished_of(server);
  EXPECT_EQ(told.result, done);
  ASSERT_EQ(told.slots.size(), 3U);
  EXPECT_EQ(told.slots[0].last, 99U);
  EXPECT_EQ(told.slots[0].primary, "10.0.0.7:6379");
  EXPECT_EQ(told.slots[0].replicas, std::vector<std::string>{"10.0.0.9:7000"});
  EXPECT_TRUE(told.slots[1].replicas.empty());
  EXPECT_EQ(told.slots[1].primary, ":6380") << "the node does not know its own";
  EXPECT_EQ(told.slots[2].first, 300U);
  EXPECT_EQ(told.slots[2].primary, "[fd00::7]:6381") << "names of hosts are not resolved";
  auto none = finished_of(server);
  EXPECT_EQ(none.tag, 2U);
  EXPECT_TRUE(none.slots.empty());
  EXPECT_EQ(finished_of(server).why.code, errc::unsupported);
}

TEST(ValkeyTells, TellsTheReplicasOfSlots) {
  played_server server;
  server.slots(1);
  const std::string primary = "*4\r\n$8\r\n10.0.0.7\r\n:6379\r\n$2\r\nid\r\n*0\r\n";
  const std::string named =
      "*4\r\n$1\r\nh\r\n:6381\r\n$2\r\nid\r\n*4\r\n$1\r\na\r\n$1\r\nb\r\n$2\r\nip\r\n$7\r\nfd00::7\r\n";
  const std::string wrong = "*2\r\n$1\r\nh\r\n:0\r\n", unknown = "*3\r\n_\r\n:6380\r\n$2\r\nid\r\n";
  ASSERT_TRUE(receive(server, "*1\r\n*6\r\n:0\r\n:16383\r\n" + primary + wrong + named + unknown, 7));
  const auto told = finished_of(server);
  EXPECT_EQ(told.result, done);
  ASSERT_EQ(told.slots.size(), 1U);
  EXPECT_EQ(told.slots[0].primary, "10.0.0.7:6379");
  EXPECT_EQ(told.slots[0].replicas, (std::vector<std::string>{"[fd00::7]:6381", ":6380"}))
      << "one without a port is left out";
}

TEST(ValkeyTells, TellsABoundedNumberOfReplicas) {
  played_server server;
  server.slots(1);
  const size_t replicas = 2 * slot_range::replicas_max;
  std::string said = "*1\r\n*" + std::to_string(3 + replicas) + "\r\n:0\r\n:1\r\n*2\r\n$1\r\n1\r\n:1\r\n";
  for (size_t i = 0; i < replicas; ++i)
    said += "*2\r\n$1\r\n1\r\n:" + std::to_string(100 + i) + "\r\n";
  ASSERT_TRUE(receive(server, said));
  const auto told = finished_of(server);
  ASSERT_EQ(told.slots.size(), 1U);
  ASSERT_EQ(told.slots[0].replicas.size(), slot_range::replicas_max);
  EXPECT_EQ(told.slots[0].replicas.back(), "1:" + std::to_string(100 + slot_range::replicas_max - 1));
}

TEST(ValkeyTells, SlotsThatAreNoneViolateTheProtocol) {
  const std::string node = "*2\r\n$1\r\n1\r\n:1\r\n";
  for (const std::string& said :
       {std::string(":1\r\n"), std::string("*1\r\n:1\r\n"), std::string("*1\r\n*2\r\n:1\r\n:1\r\n"),
        "*1\r\n*3\r\n:2\r\n:1\r\n" + node, "*1\r\n*3\r\n:0\r\n:16384\r\n" + node,
        "*1\r\n*3\r\n:-1\r\n:1\r\n" + node, "*1\r\n*3\r\n" + node + ":0\r\n:1\r\n",
        std::string("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\n1\r\n:0\r\n"),
        std::string("*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\n1\r\n"),
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$5000\r\n" + std::string(5000, 'h') + "\r\n:1\r\n"}) {
    played_server server;
    server.slots(1);
    EXPECT_FALSE(receive(server, said)) << said;
  }
}

TEST(ValkeyTells, SaysHowItRuns) {
  const std::pair<const char*, server_mode> modes[] = {{"$10\r\nstandalone", server_mode::standalone},
                                                       {"$7\r\ncluster", server_mode::cluster},
                                                       {"$8\r\nsentinel", server_mode::sentinel},
                                                       {"$5\r\nother", server_mode::unknown}};
  for (const auto& [said, mode] : modes) {
    valkey_connection server({});
    EXPECT_EQ(server.mode(), server_mode::unknown);
    ASSERT_TRUE(receive(server, "%2\r\n$4\r\nmode\r\n" + std::string(said) + "\r\n$5\r\nproto\r\n:3\r\n"));
    EXPECT_EQ(server.mode(), mode) << said;
  }
}

TEST(ValkeyCommands, AskingHasNoResult) {
  played_server server;
  server.asking();
  server.exists(1, "k");
  server.asking();
  server.exists(2, "k");
  EXPECT_TRUE(sent(server).starts_with(words({"ASKING"}) + words({"EXISTS", "k"})));
  ASSERT_TRUE(
      receive(server, "+OK\r\n:1\r\n!5000\r\n" + std::string(5000, 'e') + "\r\n-ASK 7 10.0.0.7:1\r\n", 7));
  EXPECT_EQ(finished_of(server).tag, 1U);
  auto second = finished_of(server);
  EXPECT_EQ(second.tag, 2U);
  EXPECT_EQ(second.redirected, (redirection{true, "10.0.0.7:1"}));
  EXPECT_FALSE(server.next_finished());
}

TEST(ValkeyTells, AnAddressWithoutAPortViolatesTheProtocol) {
  for (const char* said : {":1\r\n", "*1\r\n$1\r\n0\r\n", "*2\r\n:1\r\n:2\r\n", "*2\r\n*0\r\n$1\r\n1\r\n"}) {
    played_server server;
    server.primary(1, "kv");
    EXPECT_FALSE(receive(server, said)) << said;
  }
}

TEST(ValkeyTells, KeysWithoutACursorViolateTheProtocol) {
  for (const char* said : {"+OK\r\n", ":1\r\n", "*1\r\n$1\r\n0\r\n", "*2\r\n:1\r\n*0\r\n", "_\r\n"}) {
    played_server server;
    server.scan(1, "0", "t/*", 10);
    auto taken = receive(server, said);
    ASSERT_FALSE(taken) << said;
    EXPECT_NE(taken.error().text.find("a cursor and keys"), std::string::npos) << taken.error().text;
  }
}

// ---- logging in ----

TEST(ValkeyLogin, GreetsWithTheCredentials) {
  valkey_connection plain({});
  EXPECT_EQ(sent(plain), words({"HELLO", "3"}));
  valkey_connection with_password({.password = "secret"});
  EXPECT_EQ(sent(with_password), words({"HELLO", "3", "AUTH", "default", "secret"}));
  valkey_connection with_user({.user = "kv", .password = "secret"});
  EXPECT_EQ(sent(with_user), words({"HELLO", "3", "AUTH", "kv", "secret"}));
}

TEST(ValkeyLogin, SelectsADatabase) {
  valkey_connection server({.database = 5});
  sent(server);
  ASSERT_TRUE(receive(server, "%2\r\n+server\r\n+redis\r\n+modules\r\n*1\r\n%1\r\n+name\r\n+x\r\n", 3));
  EXPECT_FALSE(server.ready());
  EXPECT_EQ(sent(server), words({"SELECT", "5"}));
  ASSERT_TRUE(receive(server, "+OK\r\n"));
  EXPECT_TRUE(server.ready());
  EXPECT_FALSE(server.next_finished());
}

TEST(ValkeyLogin, AReplicaIsAskedForReadsOnce) {
  valkey_connection plain({}, true);
  EXPECT_EQ(sent(plain), words({"HELLO", "3"}));
  ASSERT_TRUE(receive(plain, "%1\r\n+proto\r\n:3\r\n"));
  EXPECT_FALSE(plain.ready());
  EXPECT_EQ(sent(plain), words({"READONLY"}));
  ASSERT_TRUE(receive(plain, "+OK\r\n"));
  EXPECT_TRUE(plain.ready());
  EXPECT_EQ(sent(plain), "");
  EXPECT_FALSE(plain.next_finished());
  valkey_connection older({.password = "secret"}, true);
  sent(older);
  ASSERT_TRUE(receive(older, "-ERR unknown command `HELLO`\r\n"));
  EXPECT_EQ(sent(older), words({"AUTH", "secret"}));
  ASSERT_TRUE(receive(older, "+OK\r\n"));
  EXPECT_EQ(sent(older), words({"READONLY"}));
  const auto refused =
      receive(older, "-NOPERM this user has no permissions to run the 'readonly' command\r\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_NE(refused.error().text.find("with reads=replicas READONLY"), std::string::npos)
      << refused.error().text;
}

TEST(ValkeyLogin, AnOlderServerIsGreetedWithoutHello) {
  for (const char* unknown :
       {"-ERR unknown command `HELLO`, with args beginning with: `3`\r\n", "-NOPROTO no\r\n"}) {
    valkey_connection plain({});
    sent(plain);
    ASSERT_TRUE(receive(plain, unknown));
    EXPECT_TRUE(plain.ready());
    valkey_connection with_password({.password = "secret", .database = 1});
    sent(with_password);
    ASSERT_TRUE(receive(with_password, unknown));
    EXPECT_EQ(sent(with_password), words({"AUTH", "secret"}));
    ASSERT_TRUE(receive(with_password, "+OK\r\n"));
    EXPECT_EQ(sent(with_password), words({"SELECT", "1"}));
    valkey_connection with_user({.user = "kv", .password = "secret"});
    sent(with_user);
    ASSERT_TRUE(receive(with_user, unknown));
    EXPECT_EQ(sent(with_user), words({"AUTH", "kv", "secret"}));
  }
}

TEST(ValkeyLogin, AServerThatAsksForThePasswordBeforeItKnowsNoHelloGetsIt) {
  valkey_connection with_password({.password = "secret"});
  sent(with_password);
  ASSERT_TRUE(receive(with_password, "-NOAUTH Authentication required.\r\n"));
  EXPECT_EQ(sent(with_password), words({"AUTH", "secret"}));
  ASSERT_TRUE(receive(with_password, "+OK\r\n"));
  EXPECT_TRUE(with_password.ready());
  valkey_connection refused({.password = "secret"});
  sent(refused);
  ASSERT_TRUE(receive(refused, "-NOAUTH Authentication required.\r\n"));
  EXPECT_EQ(receive(refused, "-NOAUTH Authentication required.\r\n").error().code, errc::denied);
}

TEST(ValkeyLogin, SaysWhyTheServerDoesNotLetUsIn) {
  struct {
    const char* said;
    errc code;
    const char* fix;
  } cases[] = {
      {"-NOAUTH HELLO must be called with the client already authenticated\r\n", errc::denied,
       "set password_file"},
      {"-WRONGPASS invalid username-password pair\r\n", errc::denied, "check user and password_file"},
      {"-ERR max number of clients reached\r\n", errc::denied, "max number of clients"},
      {"-LOADING Redis is loading the dataset in memory\r\n", errc::busy, "asked again"},
  };
  for (auto& c : cases) {
    valkey_connection server({.password = "hunter2"});
    auto taken = receive(server, c.said, 4);
    ASSERT_FALSE(taken) << c.said;
    EXPECT_EQ(taken.error().code, c.code);
    EXPECT_NE(taken.error().text.find(c.fix), std::string::npos) << taken.error().text;
    EXPECT_FALSE(server.ready());
  }
}

TEST(ValkeyLogin, TheOlderWayIsRefusedAsWell) {
  valkey_connection server({.password = "hunter2"});
  ASSERT_TRUE(receive(server, "-ERR unknown command `HELLO`\r\n"));
  auto taken = receive(server, "-ERR Client sent AUTH, but no password is set\r\n");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, errc::denied);
}

// Some servers repeat what they do not understand.
TEST(ValkeyLogin, NoErrorContainsThePassword) {
  for (const char* said : {"-ERR wrong arguments: 'AUTH' 'hunter2' 'hunter2'\r\n", "-ERR hunhunter2ter2\r\n",
                           "-hunter2\r\n", "-WRONGPASS hunter2 is wrong\r\n"}) {
    valkey_connection server({.password = "hunter2"});
    auto taken = receive(server, said);
    ASSERT_FALSE(taken) << said;
    EXPECT_EQ(taken.error().code, errc::denied) << said;
    EXPECT_EQ(taken.error().text.find("hunter2"), std::string::npos) << taken.error().text;
  }
}

// ---- commands ----

TEST(ValkeyCommands, AreSentAsTheirWords) {
  played_server server;
  server.ping(1);
  server.exists(2, "k");
  server.read_text(3, "k");
  server.write_text(4, "k", "v");
  server.write_text_if_absent(5, "k", "v");
  server.erase(6, "k");
  server.track(7);
  EXPECT_EQ(sent(server), words({"PING"}) + words({"EXISTS", "k"}) + words({"GET", "k"}) +
                              words({"SET", "k", "v"}) + words({"SET", "k", "v", "NX"}) +
                              words({"UNLINK", "k"}) + words({"CLIENT", "TRACKING", "ON"}));
}

TEST(ValkeyCommands, APayloadIsSentFromWhereItLies) {
  played_server server;
  auto payload = std::make_shared<std::string>(5000, 'p');
  bytes header(4, std::byte{'h'});
  server.write(1, "k", header, std::as_bytes(std::span(*payload)), payload, std::chrono::seconds(60));
  EXPECT_EQ(payload.use_count(), 2);
  bool found = false;
  {
    auto part = server.outgoing().begin();
    for (const iovec& area : part.areas)
      found |= area.iov_base == payload->data();
    server.outgoing().sent(0);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(sent(server), words({"SET", "k", "hhhh" + *payload, "EX", "60"}));
  EXPECT_EQ(payload.use_count(), 1);
  server.write(2, "k", header, {}, nullptr, std::chrono::seconds(0));
  EXPECT_EQ(sent(server), words({"SET", "k", "hhhh"}));
}

TEST(ValkeyCommands, HaveRoomForABoundedNumber) {
  played_server server;
  for (size_t i = 0; i < valkey_connection::commands_max; ++i) {
    EXPECT_TRUE(server.has_room());
    server.ping(i);
  }
  EXPECT_FALSE(server.has_room());
  ASSERT_TRUE(receive(server, "+PONG\r\n"));
  EXPECT_TRUE(server.has_room());
}

TEST(ValkeyCommands, RepliesComeInOrder) {
  for (size_t piece : {1u, 2u, 5u, 1000u}) {
    played_server server;
    server.ping(10);
    server.exists(11, "a");
    server.exists(12, "b");
    server.read_text(13, "c");
    server.read_text(14, "d");
    server.read_text(15, "e");
    server.write_text_if_absent(16, "f", "v");
    server.write_text_if_absent(17, "g", "v");
    server.erase(18, "h");
    server.erase(19, "i");
    server.track(20);
    ASSERT_TRUE(receive(server,
                        "+PONG\r\n:1\r\n:0\r\n$2\r\nhi\r\n_\r\n$-1\r\n+OK\r\n_\r\n:1\r\n:0\r\n-NOPERM no\r\n",
                        piece));
    command_result expected[] = {done, done,   absent, done,   absent, absent,
                                 done, absent, done,   absent, refused};
    for (uint64_t tag = 10; tag <= 20; ++tag) {
      auto finished = finished_of(server);
      EXPECT_EQ(finished.tag, tag);
      EXPECT_EQ(finished.result, expected[tag - 10]) << tag;
      EXPECT_EQ(finished.text, tag == 13 ? "hi" : "");
      EXPECT_EQ(finished.why.code, tag == 20 ? errc::denied : errc::ok);
    }
    EXPECT_FALSE(server.next_finished());
  }
}

TEST(ValkeyCommands, AValueIsReceivedWhereItShallLie) {
  for (size_t payload_bytes : {size_t{0}, size_t{10}, size_t{4092}, size_t{4093}, size_t{100'000}})
    for (size_t piece : {size_t{1}, size_t{1000}, SIZE_MAX}) {
      played_server server;
      bytes header(4), payload(payload_bytes);
      server.read(1, "k", header, payload);
      server.exists(2, "l");
      std::string value = "head" + std::string(payload_bytes, 'p');
      ASSERT_TRUE(receive(server, "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n:1\r\n", piece));
      EXPECT_EQ(finished_of(server).result, done);
      EXPECT_EQ(finished_of(server).result, done);
      EXPECT_EQ(std::memcmp(header.data(), "head", 4), 0);
      EXPECT_EQ(payload, bytes(payload_bytes, std::byte{'p'}));
    }
}

TEST(ValkeyCommands, ALongValueIsNotCopiedTwice) {
  played_server server;
  bytes header(4), payload(100'000);
  server.read(1, "k", header, payload);
  ASSERT_TRUE(receive(server, "$100004\r\nheadpp"));
  auto area = server.receive_area();
  EXPECT_EQ(area.data(), payload.data() + 2);
  EXPECT_EQ(area.size(), payload.size() - 2);
}

TEST(ValkeyCommands, AShorterValueIsReadAndItsLengthTold) {
  for (size_t value_bytes : {size_t{4}, size_t{5}, size_t{99}, size_t{9'999}, size_t{10'004}})
    for (size_t piece : {size_t{1}, size_t{7}, SIZE_MAX}) {
      played_server server;
      bytes header(4), payload(10'000);
      server.read(1, "k", header, payload);
      server.exists(2, "l");
      ASSERT_TRUE(receive(
          server, "$" + std::to_string(value_bytes) + "\r\n" + std::string(value_bytes, 'x') + "\r\n:1\r\n",
          piece));
      auto read = finished_of(server);
      EXPECT_EQ(read.result, done) << value_bytes;
      EXPECT_EQ(read.number, static_cast<int64_t>(value_bytes - header.size()));
      EXPECT_EQ(finished_of(server).result, done);
      bytes expected(payload.size());
      std::fill_n(expected.begin(), value_bytes - header.size(), std::byte{'x'});
      EXPECT_EQ(payload, expected) << "nothing is written behind it";
    }
}

TEST(ValkeyCommands, AValueOfAnotherLengthIsSkipped) {
  for (size_t value_bytes : {size_t{0}, size_t{3}, size_t{101}, size_t{10'001}, size_t{50'000}})
    for (size_t piece : {size_t{7}, SIZE_MAX}) {
      played_server server;
      bytes header(4), payload(value_bytes < 1000 ? 96 : 9'996);
      server.read(1, "k", header, payload);
      server.exists(2, "l");
      ASSERT_TRUE(receive(
          server, "$" + std::to_string(value_bytes) + "\r\n" + std::string(value_bytes, 'x') + "\r\n:1\r\n",
          piece));
      EXPECT_EQ(finished_of(server).result, wrong_length) << value_bytes;
      EXPECT_EQ(finished_of(server).result, done);
      EXPECT_EQ(payload, bytes(payload.size())) << "nothing was written there";
    }
}

TEST(ValkeyCommands, ALongTextIsNotRead) {
  played_server server;
  server.read_text(1, "k");
  ASSERT_TRUE(receive(server, "$5000\r\n" + std::string(5000, 'x') + "\r\n"));
  EXPECT_EQ(finished_of(server).result, wrong_length);
}

TEST(ValkeyCommands, AnErrorIsOfItsCommandAlone) {
  played_server server;
  bytes memory(8);
  server.read(1, "k", memory, {});
  server.read(2, "k", memory, {});
  server.exists(3, "l");
  ASSERT_TRUE(
      receive(server, "-MOVED 3999 127.0.0.1:6381\r\n!5000\r\n" + std::string(5000, 'e') + "\r\n:1\r\n", 11));
  auto moved = finished_of(server);
  EXPECT_EQ(moved.result, refused);
  EXPECT_EQ(moved.why.code, errc::unsupported);
  EXPECT_NE(moved.why.text.find("cluster://"), std::string::npos);
  EXPECT_EQ(moved.redirected, (redirection{false, "127.0.0.1:6381"}));
  EXPECT_EQ(finished_of(server).result, refused);
  EXPECT_EQ(finished_of(server).result, done);
  server.exists(4, "k");
  ASSERT_TRUE(receive(server, "-CLUSTERDOWN Hash slot not served\r\n"));
  EXPECT_TRUE(finished_of(server).cluster_down);
  EXPECT_FALSE(moved.cluster_down);
}

TEST(ValkeyErrors, SayWhatToDo) {
  struct {
    const char* said;
    errc code;
    const char* fix;
  } cases[] = {
      {"NOAUTH Authentication required.", errc::denied, "password_file"},
      {"NOPERM this user has no permissions", errc::denied, "UNLINK"},
      {"OOM command not allowed when used memory > 'maxmemory'.", errc::no_space, "maxmemory-policy"},
      {"READONLY You can't write against a read only replica.", errc::unsupported, "address of its primary"},
      {"CLUSTERDOWN Hash slot not served", errc::busy, "cluster-require-full-coverage no"},
      {"ASK 7 10.0.0.7:1", errc::unsupported, "with cluster:// in front"},
      {"ERR This instance has cluster support disabled", errc::unsupported,
       "cluster support disabled"}, // read_guidance says more
      {"MISCONF Errors writing to the AOF file", errc::busy, "log"},
      {"WRONGTYPE Operation against a key", errc::internal, "WRONGTYPE"},
      {"", errc::internal, "refuses a command"},
  };
  for (auto& c : cases) {
    auto why = error_of_server(c.said);
    EXPECT_EQ(why.code, c.code) << c.said;
    EXPECT_NE(why.text.find(c.fix), std::string::npos) << why.text;
  }
  auto long_text = error_of_server("ERR \x1b[2J" + std::string(4000, 'x')).text;
  EXPECT_LT(long_text.size(), 400u);
  EXPECT_EQ(long_text.find('\x1b'), std::string::npos);
}

// ---- violations ----

TEST(ValkeyConnection, EndsWithRepliesThatNoServerSends) {
  struct {
    void (*ask)(valkey_connection&);
    const char* reply;
    const char* expected;
  } cases[] = {
      {[](valkey_connection&) {}, "+OK\r\n", "a command before its reply"},
      {[](valkey_connection& s) { s.exists(1, "k"); }, "+OK\r\n", "an integer"},
      {[](valkey_connection& s) { s.exists(1, "k"); }, "*1\r\n:1\r\n", "a reply of one item"},
      {[](valkey_connection& s) { s.erase(1, "k"); }, "_\r\n", "an integer"},
      {[](valkey_connection& s) { s.read_text(1, "k"); }, ":1\r\n", "a text or null"},
      {[](valkey_connection& s) { s.read_text(1, "k"); }, "*0\r\n", "a text or null"},
      {[](valkey_connection& s) { s.write_text(1, "k", "v"); }, "_\r\n", "OK"},
      {[](valkey_connection& s) { s.write_text_if_absent(1, "k", "v"); }, ":1\r\n", "OK"},
      {[](valkey_connection& s) { s.ping(1); }, "HTTP/1.1 200 OK\r\n", "a reply was expected"},
  };
  for (auto& c : cases) {
    played_server server;
    c.ask(server);
    auto taken = receive(server, c.reply);
    ASSERT_FALSE(taken) << c.reply;
    EXPECT_EQ(taken.error().code, errc::bad_request);
    EXPECT_NE(taken.error().text.find(c.expected), std::string::npos) << taken.error().text;
  }
  played_server server;
  server.ping(1);
  auto taken = receive(server, "$5000\r\n" + std::string(5000, 'x') + "\r\n");
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().text.find("a short reply"), std::string::npos) << taken.error().text;
}

// ---- what the server tells by itself ----

TEST(ValkeyNotices, NameTheKeysThatHaveChanged) {
  for (size_t piece : {size_t{1}, SIZE_MAX}) {
    played_server server;
    server.exists(1, "a");
    ASSERT_TRUE(receive(server,
                        ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n"
                        ">2\r\n+other\r\n$1\r\nc\r\n>0\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nd\r\n",
                        piece));
    EXPECT_EQ(finished_of(server).result, done);
    auto changed = server.take_invalidated();
    EXPECT_FALSE(changed.all);
    EXPECT_EQ(changed.keys, (std::vector<std::string>{"a", "b", "d"}));
    EXPECT_TRUE(server.take_invalidated().keys.empty());
  }
}

TEST(ValkeyNotices, MayConcernAllKeys) {
  const std::string all = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
  const std::string one = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
  const std::string long_key = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$5000\r\n" + std::string(5000, 'k') + "\r\n";
  for (const std::string& stream : {all, one + all + one, long_key}) {
    played_server server;
    ASSERT_TRUE(receive(server, stream));
    auto changed = server.take_invalidated();
    EXPECT_TRUE(changed.all);
    EXPECT_TRUE(changed.keys.empty());
  }
}

TEST(ValkeyNotices, TooManyKeysAreAllKeys) {
  played_server server;
  for (size_t i = 0; i < valkey_connection::invalidated_max; ++i)
    ASSERT_TRUE(receive(server, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"));
  EXPECT_FALSE(server.take_invalidated().all);
  for (size_t i = 0; i <= valkey_connection::invalidated_max; ++i)
    ASSERT_TRUE(receive(server, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"));
  EXPECT_TRUE(server.take_invalidated().all);
}

} // namespace
} // namespace terrace::remote
