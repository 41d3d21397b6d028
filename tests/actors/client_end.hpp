// The client's end of a socket pair, on the test's thread: writes frames, reads what has been answered.
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace terrace::actors::test {

using protocol::kind;

struct received {
  protocol::kind kind{};
  uint64_t id = 0;
  std::vector<uint8_t> body;

  template <class T>
  const T& as() const {
    auto table = protocol::parse<T>(body);
    EXPECT_TRUE(table) << table.error().text;
    return **table;
  }
  /// `ok` for anything but an error frame.
  errc code() const { return kind == kind::error ? static_cast<errc>(as<wire::Error>().code()) : errc::ok; }
  std::string text() const { return kind == kind::error ? as<wire::Error>().text()->str() : ""; }
};

class client_end {
 public:
  explicit client_end(unique_fd socket) : socket_(std::move(socket)) {}

  /// `make` builds the body and returns its offset.
  template <class F>
  void send(kind what, uint64_t id, F&& make, int descriptor = -1) {
    auto& body = builder_.start();
    builder_.finish(what, id, make(body), descriptor < 0 ? 0 : 1);
    std::vector<int> descriptors;
    if (descriptor >= 0)
      descriptors.push_back(descriptor);
    protocol::outgoing_message message;
    ASSERT_EQ(::sendmsg(socket_.get(), message.prepare(builder_.bytes(), descriptors), protocol::send_flags),
              static_cast<ssize_t>(builder_.bytes().size()));
  }
  void send_hello() {
    send(kind::hello, 1,
         [](auto& body) { return wire::CreateHello(body, protocol::version, body.CreateString("test")); });
  }
  void send_raw(const std::vector<uint8_t>& bytes) {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  /// The next frame that has arrived, if any.
  std::optional<received> next() {
    for (;;) {
      if (auto frame = decoder_.next())
        return received{frame->kind, frame->request_id, {frame->body.begin(), frame->body.end()}};
      protocol::incoming_message message;
      ssize_t n = ::recvmsg(socket_.get(), message.prepare(decoder_.write_area()),
                            protocol::receive_flags | MSG_DONTWAIT);
      if (n < 0)
        return std::nullopt;
      if (n == 0) {
        ended_ = true;
        return std::nullopt;
      }
      auto arrived = message.take();
      auto ok = decoder_.commit(static_cast<size_t>(n), std::move(arrived), message.truncated());
      EXPECT_TRUE(ok) << ok.error().text;
    }
  }
  /// The daemon has closed; reads what is before that.
  bool ended() {
    while (next())
      ;
    return ended_;
  }
  void close() { socket_.reset(); }

 private:
  unique_fd socket_;
  protocol::frame_builder builder_;
  protocol::frame_decoder decoder_{{.accepts = protocol::direction::answers}};
  bool ended_ = false;
};

/// Connects to a listening socket; nobody need have accepted yet.
inline client_end connect_to(const std::string& path) {
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return client_end(std::move(socket));
}

} // namespace terrace::actors::test
