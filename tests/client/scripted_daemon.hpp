// The other end of a connection. It does what the test's script says, including what no daemon would do.
//
//   scripted_daemon daemon([](peer& client) { client.welcome(); auto request = client.receive(); ... });
//   auto connection = connection::over(daemon.socket(), {});
#pragma once

#include "client/client.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace terrace::client::test {

using protocol::kind;
using body_builder = flatbuffers::FlatBufferBuilder;

/// A request as the peer keeps it.
struct request {
  protocol::kind kind{};
  uint64_t id = 0;
  std::vector<uint8_t> body;
  protocol::descriptor_list descriptors;

  template <class T>
  const T& as() const {
    auto table = protocol::parse<T>(body);
    EXPECT_TRUE(table) << table.error().text;
    return **table;
  }
};

struct welcome_options {
  uint32_t version = protocol::version;
  uint8_t boot = 1; ///< value of all 16 bytes
  uint64_t connection = 7;
  uint32_t credit_requests = 64;
  uint64_t credit_bytes = 64 << 20;
};

class peer {
 public:
  explicit peer(unique_fd socket) : socket_(std::move(socket)) {}

  /// Receives the next request; its kind is 0 when the client has closed.
  request receive() {
    for (;;) {
      if (auto next = decoder_.next())
        return {next->kind,
                next->request_id,
                {next->body.begin(), next->body.end()},
                std::move(next->descriptors)};
      protocol::incoming_message message;
      auto* header = message.prepare(decoder_.write_area());
      auto got = ::recvmsg(socket_.get(), header, protocol::receive_flags);
      if (got <= 0)
        return {};
      auto descriptors = message.take();
      auto ok = decoder_.commit(static_cast<size_t>(got), std::move(descriptors), message.truncated());
      EXPECT_TRUE(ok) << ok.error().text;
      if (!ok)
        return {};
    }
  }

  request expect(protocol::kind expected) {
    auto got = receive();
    EXPECT_EQ(protocol::to_string(got.kind), protocol::to_string(expected));
    return got;
  }

  template <class Build>
  std::vector<uint8_t> frame(protocol::kind what, uint64_t id, Build&& build, uint16_t fd_count = 0) {
    builder_.finish(what, id, build(builder_.start()), fd_count);
    return {builder_.bytes().begin(), builder_.bytes().end()};
  }

  template <class Build>
  void answer(const request& to, Build&& build, std::vector<int> descriptors = {}) {
    send(frame(protocol::answer_to(to.kind), to.id, std::forward<Build>(build),
               static_cast<uint16_t>(descriptors.size())),
         descriptors);
  }

  void refuse(uint64_t id, errc code, const std::string& text) {
    send(frame(kind::error, id, [&](body_builder& body) {
      return wire::CreateError(body, static_cast<uint8_t>(code), body.CreateString(text));
    }));
  }

  /// False once the client is gone.
  bool send(std::span<const uint8_t> bytes, std::vector<int> descriptors = {}) {
    while (!bytes.empty()) {
      protocol::outgoing_message message;
      auto sent = ::sendmsg(socket_.get(), message.prepare(bytes, descriptors), protocol::send_flags);
      if (sent <= 0)
        return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
      descriptors.clear();
    }
    return true;
  }

  /// Answers the hello and returns it.
  request welcome(welcome_options with = {}) {
    auto hello = expect(kind::hello);
    if (hello.kind != kind::hello)
      return hello;
    answer(hello, [&](body_builder& body) {
      auto version = body.CreateString("0.1.0");
      auto boot = body.CreateVector(std::vector<uint8_t>(16, with.boot));
      auto group = body.CreateString("main");
      auto features = body.CreateVectorOfStrings({"mapped_arena", "staging"});
      return wire::CreateHelloAnswer(body, with.version, version, boot, with.connection, group, features,
                                     with.credit_requests, with.credit_bytes, protocol::frame_bytes_max);
    });
    return hello;
  }

  void answer_open_space(uint32_t id) {
    auto open = expect(kind::open_space);
    answer(open, [&](body_builder& body) {
      return wire::CreateOpenSpaceAnswer(body, id, body.CreateVector(std::vector<uint8_t>(32, 0xab)));
    });
  }

  void answer_register_region(uint32_t id) {
    auto asked = expect(kind::register_region);
    EXPECT_EQ(asked.descriptors.size(), 1U);
    answer(asked, [&](body_builder& body) { return wire::CreateRegisterRegionAnswer(body, id, true); });
  }

  /// Announces one group, which `make_group` builds, and at most one client.
  template <class F>
  void answer_status(F&& make_group, const char* name_of_client = nullptr) {
    answer(expect(kind::status), [&](body_builder& body) {
      auto groups = body.CreateVector(std::vector{make_group(body)});
      std::vector<flatbuffers::Offset<wire::ClientStatus>> clients;
      if (name_of_client != nullptr)
        clients.push_back(
            wire::CreateClientStatusDirect(body, 7, name_of_client, 123, 1000, "main", "connected", 2));
      auto listed = body.CreateVector(clients);
      auto version = body.CreateString("0.1.0");
      auto boot = body.CreateVector(std::vector<uint8_t>(16, 1));
      auto ring = body.CreateVectorOfStrings({"single_issuer"});
      return wire::CreateStatusAnswer(body, version, boot, 5000, 2, ring, groups, listed);
    });
  }

  void answer_lookup(const request& to, uint32_t chunks, std::optional<uint8_t> lease = {}) {
    answer(to, [&](body_builder& body) {
      auto tiers = body.CreateVector(std::vector<uint8_t>(chunks, static_cast<uint8_t>(tier_kind::host)));
      auto id = lease ? body.CreateVector(std::vector<uint8_t>(16, *lease)) : 0;
      return wire::CreateLookupAnswer(body, chunks, chunks, chunks * 256, chunks * 256, tiers, id);
    });
  }

  /// Reads until the client closes, so that nothing that the client sends meanwhile is lost to a broken pipe.
  void drain() {
    while (receive().kind != protocol::kind{})
      ;
  }

  void close() { socket_.reset(); }
  int socket() const { return socket_.get(); }

 private:
  unique_fd socket_;
  protocol::frame_decoder decoder_{{}};
  protocol::frame_builder builder_;
};

using script = std::function<void(peer&)>;

/// Runs one script for each connection, in order, on a thread of its own. Destroy the connection first: the destructor
/// waits for the scripts to end.
class scripted_daemon {
 public:
  /// One connection over a socket pair.
  explicit scripted_daemon(script once) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_end_ = unique_fd(ends[0]);
    thread_ = std::thread([once = std::move(once), end = ends[1]] {
      peer client{unique_fd(end)};
      once(client);
    });
  }

  /// Listens on a path, for as many connections as there are scripts.
  explicit scripted_daemon(std::vector<script> scripts) {
    directory_.emplace();
    path_ = *directory_ / "socket";
    unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 8), 0);
    thread_ = std::thread([scripts = std::move(scripts), socket = std::move(listener)] {
      for (const auto& next : scripts) {
        peer client{unique_fd(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC))};
        next(client);
      }
    });
  }

  ~scripted_daemon() {
    client_end_.reset();
    thread_.join();
  }

  unique_fd socket() { return std::move(client_end_); }
  const std::string& path() const { return path_; }

  /// A connection over the socket pair.
  connection connect(const char* name = "test") {
    auto made = connection::over(socket(), {.name = name});
    EXPECT_TRUE(made) << made.error().text;
    return std::move(*made);
  }

 private:
  unique_fd client_end_;
  std::optional<terrace::test::temporary_folder> directory_;
  std::string path_;
  std::thread thread_;
};

inline space_spec some_space() {
  return {
      .model = "model", .dtype = "bf16", .layout = "paged", .pools = {{.name = "kv", .object_bytes = 4096}}};
}

inline std::vector<digest> some_digests(size_t count) {
  std::vector<digest> digests(count);
  for (size_t i = 0; i < count; ++i)
    digests[i].bytes.fill(static_cast<uint8_t>(i + 1));
  return digests;
}

inline lease_id lease_of(uint8_t byte) {
  lease_id id;
  id.bytes.fill(byte);
  return id;
}

#define ASSERT_FINE(outcome) ASSERT_TRUE(outcome) << (outcome).error().text
#define EXPECT_FAILS(outcome, expected_code, part)                                                           \
  do {                                                                                                       \
    const auto& outcome_ = (outcome);                                                                        \
    ASSERT_FALSE(outcome_);                                                                                  \
    EXPECT_EQ(to_string(outcome_.error().code), to_string(expected_code));                                   \
    EXPECT_NE(outcome_.error().text.find(part), std::string::npos) << outcome_.error().text;                 \
  } while (false)

} // namespace terrace::client::test
