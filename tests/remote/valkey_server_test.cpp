// The client against a real redis-server, over a plain blocking socket.
#include "index/payload_checksum.hpp"
#include "remote/valkey_connection.hpp"
#include "remote/value_header.hpp"
#include "tests/support/redis_process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace terrace::remote {
namespace {

using enum command_result;
using std::chrono::seconds;

/// A connection with its socket.
class blocking_connection : public valkey_connection {
 public:
  explicit blocking_connection(const test::redis_process& server, const store_login& login = {})
      : valkey_connection(login), socket_(server.connect()) {}

  /// Sends and receives until it is ready. Errors: why it will not be.
  result<void> log_in() {
    while (!ready())
      if (auto done = turn(); !done)
        return done;
    return {};
  }

  /// Sends and receives until a command has finished.
  finished_command next() {
    while (true) {
      if (auto finished = next_finished())
        return *finished;
      if (auto done = turn(); !done)
        throw std::runtime_error(done.error().text);
    }
  }

  /// Receives until the server has told something by itself.
  invalidated_keys next_invalidated() {
    while (true) {
      if (auto changed = take_invalidated(); changed.all || !changed.keys.empty())
        return changed;
      if (auto done = turn(); !done)
        throw std::runtime_error(done.error().text);
    }
  }

 private:
  result<void> turn() {
    while (!outgoing().empty()) {
      auto part = outgoing().begin();
      msghdr message{};
      message.msg_iov = part.areas.data();
      message.msg_iovlen = part.areas.size();
      ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
      if (count < 0)
        return fail(errc::gone, "sendmsg failed");
      outgoing().sent(static_cast<uint64_t>(count));
    }
    auto area = receive_area();
    ssize_t count = ::recv(socket_.get(), area.data(), area.size(), 0);
    if (count <= 0)
      return fail(errc::gone, "the server has closed the connection");
    return received(static_cast<size_t>(count));
  }

  unique_fd socket_;
};

/// Sends a command as a line of words and returns the first line of the reply.
std::string line_of(const test::redis_process& server, const std::string& command) {
  auto socket = server.connect();
  std::string line = command + "\r\n";
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("send failed");
  std::string reply;
  while (!reply.ends_with("\r\n")) {
    char c = 0;
    if (::recv(socket.get(), &c, 1, 0) != 1)
      throw std::runtime_error("the server has closed the connection");
    reply.push_back(c);
  }
  return reply.substr(0, reply.size() - 2);
}

class ValkeyServer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::redis_process::installed())
      GTEST_SKIP() << "no redis-server on this machine; install the package `redis-server`";
  }
  test::temporary_folder folder_;
};

const std::string realm_key(32, 'k');
const realm names = realm::make("test/", {reinterpret_cast<const uint8_t*>(realm_key.data()), 32}).value();

remote_identity object_number(uint8_t number) {
  remote_identity object{.space = names.space_of({}), .epoch = 77, .pool = 1, .rank = 2};
  object.chunk.bytes.fill(number);
  return object;
}

/// The memory of an object, where it is written from and read to.
struct object_memory {
  explicit object_memory(size_t bytes) : headers(parts_of(bytes) * value_header_bytes), payload(bytes) {}

  std::span<std::byte> header(uint64_t part) {
    return std::span(headers).subspan(part * value_header_bytes, value_header_bytes);
  }
  std::span<std::byte> part(uint64_t part) {
    return std::span(payload).subspan(part * part_bytes, bytes_of_part(payload.size(), part));
  }

  std::vector<std::byte> headers;
  std::vector<std::byte> payload;
};

void write(blocking_connection& to, const remote_identity& identity,
           const std::shared_ptr<object_memory>& object) {
  for (uint32_t part = 0; part < parts_of(object->payload.size()); ++part) {
    encode({.identity = identity,
            .generation = 5,
            .payload_bytes = object->payload.size(),
            .part = part,
            .checksum = payload_checksum(object->part(part))},
           object->header(part).first<value_header_bytes>());
    to.write(part, names.key_of(identity, part), object->header(part), object->part(part), object,
             seconds(60));
  }
  for (uint32_t part = 0; part < parts_of(object->payload.size()); ++part)
    EXPECT_EQ(to.next().result, done);
}

/// Verifies all parts; returns what is wrong with the first one that is not as expected.
std::optional<value_fault> fault_of(object_memory& object, const remote_identity& identity) {
  expected_part one{.identity = identity, .payload_bytes = object.payload.size()};
  for (; one.part < parts_of(object.payload.size()); ++one.part) {
    auto verified = verify(object.header(one.part).first<value_header_bytes>(), object.part(one.part), one);
    if (!verified)
      return verified.error().fault;
    one.generation = *verified;
  }
  return std::nullopt;
}

/// Reads all parts; returns the worst result.
command_result read(blocking_connection& from, const remote_identity& identity, object_memory& object) {
  command_result worst = done;
  for (uint32_t part = 0; part < parts_of(object.payload.size()); ++part)
    from.read(part, names.key_of(identity, part), object.header(part), object.part(part));
  for (uint32_t part = 0; part < parts_of(object.payload.size()); ++part)
    worst = std::max(worst, from.next().result);
  return worst;
}

std::shared_ptr<object_memory> filled(size_t bytes) {
  auto object = std::make_shared<object_memory>(bytes);
  for (size_t i = 0; i < bytes; ++i)
    object->payload[i] = static_cast<std::byte>(i * 31 + i / 257);
  return object;
}

TEST_F(ValkeyServer, GivesBackWhatAnotherConnectionWrote) {
  test::redis_process server(folder_.path());
  blocking_connection writer(server), reader(server);
  ASSERT_TRUE(writer.log_in());
  ASSERT_TRUE(reader.log_in());
  uint8_t number = 0;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{3840}, size_t{3841}, size_t{256 << 10},
                       size_t{part_bytes}, size_t{5 * part_bytes + 123}}) {
    auto identity = object_number(++number);
    auto written = filled(bytes);
    write(writer, identity, written);
    EXPECT_EQ(written.use_count(), 1) << "the connection has let go of it";
    object_memory found(bytes);
    EXPECT_EQ(read(reader, identity, found), done) << bytes;
    EXPECT_EQ(fault_of(found, identity), std::nullopt);
    EXPECT_EQ(found.payload, written->payload);
    int64_t left = std::stoll(line_of(server, "TTL " + names.key_of(identity)).substr(1));
    EXPECT_TRUE(left > 0 && left <= 60) << left;
  }
}

TEST_F(ValkeyServer, AllKeysOfAQuestionMustExist) {
  test::redis_process server(folder_.path());
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  store.write_text(1, "a", "1");
  store.write_text(2, "b", "1");
  std::array<std::string_view, 2> both{"a", "b"}, one{"a", "c"};
  store.exists(3, both);
  store.exists(4, one);
  for (command_result expected : {done, done, done, absent})
    EXPECT_EQ(store.next().result, expected);
}

TEST_F(ValkeyServer, TellsWhatItHas) {
  test::redis_process server(folder_.path());
  blocking_connection store(server, {.database = 3});
  ASSERT_TRUE(store.log_in());
  store.ping(0);
  store.exists(1, "k");
  store.write_text(2, "k", "v");
  store.exists(3, "k");
  store.read_text(4, "k");
  store.erase(5, "k");
  store.erase(6, "k");
  store.read_text(7, "k");
  command_result expected[] = {done, absent, done, done, done, done, absent, absent};
  for (uint64_t tag = 0; tag < 8; ++tag) {
    auto finished = store.next();
    EXPECT_EQ(finished.tag, tag);
    EXPECT_EQ(finished.result, expected[tag]) << tag;
    EXPECT_EQ(finished.text, tag == 4 ? "v" : "");
  }
}

TEST_F(ValkeyServer, TheFirstTokenOfASpaceStays) {
  test::redis_process server(folder_.path());
  blocking_connection one(server), other(server);
  ASSERT_TRUE(one.log_in());
  ASSERT_TRUE(other.log_in());
  auto key = names.epoch_key_of(names.space_of({}));
  one.write_text_if_absent(1, key, epoch_text(11));
  EXPECT_EQ(one.next().result, done);
  other.write_text_if_absent(1, key, epoch_text(22));
  EXPECT_EQ(other.next().result, absent);
  other.read_text(2, key);
  EXPECT_EQ(parse_epoch(other.next().text), 11u);
}

TEST_F(ValkeyServer, BytesOfOthersAreFound) {
  test::redis_process server(folder_.path());
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  auto identity = object_number(1);
  auto key = names.key_of(identity);
  constexpr size_t payload_bytes = 10'000;
  auto fault = [&]() -> std::optional<value_fault> {
    object_memory found(payload_bytes);
    return read(store, identity, found) == done ? fault_of(found, identity) : std::nullopt;
  };
  write(store, identity, filled(payload_bytes));
  line_of(server, "SETRANGE " + key + " 5000 xyz");
  EXPECT_EQ(fault(), value_fault::wrong_payload);
  line_of(server, "SETRANGE " + key + " 20 xyz");
  EXPECT_EQ(fault(), value_fault::damaged);
  line_of(server, "SETRANGE " + key + " 0 xyz");
  EXPECT_EQ(fault(), value_fault::not_ours);
  write(store, object_number(2), filled(payload_bytes));
  line_of(server, "COPY " + names.key_of(object_number(2)) + " " + key + " REPLACE");
  EXPECT_EQ(fault(), value_fault::other_object);
  line_of(server, "APPEND " + key + " x");
  object_memory found(payload_bytes);
  EXPECT_EQ(read(store, identity, found), wrong_length);
  line_of(server, "DEL " + key);
  line_of(server, "LPUSH " + key + " x");
  EXPECT_EQ(read(store, identity, found), refused) << "a list is no value";
}

TEST_F(ValkeyServer, AMissingPartIsAMiss) {
  test::redis_process server(folder_.path());
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  auto identity = object_number(1);
  write(store, identity, filled(3 * part_bytes));
  line_of(server, "DEL " + names.key_of(identity, 1));
  object_memory found(3 * part_bytes);
  EXPECT_EQ(read(store, identity, found), absent);
}

TEST_F(ValkeyServer, TellsWhichKeysHaveChanged) {
  test::redis_process server(folder_.path());
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  ASSERT_TRUE(store.can_track());
  store.track(1);
  store.exists(2, "a");
  EXPECT_EQ(store.next().result, done);
  EXPECT_EQ(store.next().result, absent);
  line_of(server, "SET a 1"); // the key that was absent
  EXPECT_EQ(store.next_invalidated().keys, std::vector<std::string>{"a"});
  line_of(server, "FLUSHALL");
  EXPECT_TRUE(store.next_invalidated().all);
  store.ping(3);
  EXPECT_EQ(store.next().result, done);
}

TEST_F(ValkeyServer, RefusesWrongCredentials) {
  test::redis_process server(
      folder_.path(), {"--requirepass", "hunter2", "--user", "kv", "on", ">hunter3", "~test/*", "+@all"});
  auto refusal = [&server](const store_login& login) {
    blocking_connection store(server, login);
    auto done = store.log_in();
    EXPECT_FALSE(done);
    return done ? error{} : done.error();
  };
  auto none = refusal({});
  EXPECT_EQ(none.code, errc::denied);
  EXPECT_NE(none.text.find("set password_file"), std::string::npos) << none.text;
  for (const store_login& login :
       {store_login{.password = "hunter3"}, {.user = "kv", .password = "hunter2"}}) {
    auto wrong = refusal(login);
    EXPECT_EQ(wrong.code, errc::denied);
    EXPECT_NE(wrong.text.find("check user and password_file"), std::string::npos) << wrong.text;
    EXPECT_EQ(wrong.text.find("hunter"), std::string::npos) << wrong.text;
  }
  blocking_connection by_default(server, {.password = "hunter2"}),
      by_user(server, {.user = "kv", .password = "hunter3"});
  EXPECT_TRUE(by_default.log_in());
  EXPECT_TRUE(by_user.log_in());
  by_user.exists(1, "other/key");
  auto finished = by_user.next();
  EXPECT_EQ(finished.result, refused);
  EXPECT_EQ(finished.why.code, errc::denied);
}

TEST_F(ValkeyServer, RefusesADatabaseThatItLacks) {
  test::redis_process server(folder_.path(), {"--databases", "2"});
  blocking_connection store(server, {.database = 2});
  auto in = store.log_in();
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().code, errc::denied);
  EXPECT_NE(in.error().text.find("database"), std::string::npos) << in.error().text;
}

TEST_F(ValkeyServer, WithoutHelloSpeaksTheOlderProtocol) {
  test::redis_process server(folder_.path(), {"--rename-command", "HELLO", "", "--requirepass", "hunter2"});
  blocking_connection store(server, {.password = "hunter2", .database = 1});
  ASSERT_TRUE(store.log_in());
  write(store, object_number(1), filled(20'000));
  object_memory found(20'000);
  EXPECT_EQ(read(store, object_number(1), found), done);
  EXPECT_EQ(read(store, object_number(2), found), absent);
  EXPECT_FALSE(store.can_track()) << "it would say OK and then tell nothing";
}

TEST_F(ValkeyServer, AFullStoreRefusesAndSaysSo) {
  test::redis_process server(folder_.path(), {"--maxmemory", "2mb", "--maxmemory-policy", "noeviction"});
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  auto object = filled(part_bytes);
  finished_command last;
  for (uint32_t part = 0; part < 8; ++part) {
    store.write(part, names.key_of(object_number(1), part), object->header(0), object->part(0), object,
                seconds(60));
    last = store.next();
  }
  EXPECT_EQ(last.result, refused);
  EXPECT_EQ(last.why.code, errc::no_space);
}

TEST_F(ValkeyServer, AStoreThatEvictsLosesButNeverMixes) {
  test::redis_process server(folder_.path(), {"--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"});
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  constexpr size_t bytes = 2 * part_bytes;
  auto has = [&](uint8_t i) {
    object_memory found(bytes);
    if (read(store, object_number(i), found) != done)
      return false;
    EXPECT_EQ(fault_of(found, object_number(i)), std::nullopt);
    return true;
  };
  // All of them are written within the second that the server's clock of uses counts, so it removes any, also a part of what it
  // has just got.
  size_t at_once = 0, at_last = 0;
  for (uint8_t i = 0; i < 16; ++i) {
    write(store, object_number(i), filled(bytes));
    at_once += has(i) ? 1 : 0;
  }
  for (uint8_t i = 0; i < 16; ++i)
    at_last += has(i) ? 1 : 0;
  EXPECT_GT(at_once, 0u);
  EXPECT_LT(at_last, 16u);
}

TEST_F(ValkeyServer, AReplicaIsNotWrittenTo) {
  test::redis_process server(folder_.path(), {"--replicaof", "127.0.0.1 1"});
  blocking_connection store(server);
  ASSERT_TRUE(store.log_in());
  store.write_text(1, "k", "v");
  auto finished = store.next();
  EXPECT_EQ(finished.result, refused);
  EXPECT_EQ(finished.why.code, errc::unsupported);
}

TEST_F(ValkeyServer, AKilledServerEndsTheConnection) {
  std::optional<test::redis_process> server(std::in_place, folder_.path());
  blocking_connection store(*server);
  ASSERT_TRUE(store.log_in());
  server.reset();
  store.ping(1);
  EXPECT_THROW(store.next(), std::runtime_error);
  EXPECT_FALSE(store.next_finished());
}

} // namespace
} // namespace terrace::remote
