// A listening socket in a folder of the test's own, and clients that connect to it.
#pragma once

#include "actors/connection/listener_actor.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace terrace::actors::test {

using protocol::kind;
using terrace::test::raw_client;
using terrace::test::received;

/// `Base` is an `actor_fixture`.
template <class Base>
struct socket_fixture : Base {
  terrace::test::temporary_folder files;
  std::string path = files / "s";

  std::shared_ptr<unique_fd> open() {
    auto socket = open_listening_socket(path, 0600);
    EXPECT_TRUE(socket) << socket.error().text;
    return std::make_shared<unique_fd>(socket ? std::move(*socket) : unique_fd());
  }
  raw_client connect() {
    raw_client client(path);
    this->settle();
    return client;
  }
  /// Says hello; what the daemon answers.
  received greet(raw_client& client) {
    EXPECT_TRUE(client.send(terrace::test::hello_frame()));
    this->settle();
    auto answer = client.next();
    EXPECT_TRUE(answer) << "nothing was answered";
    return answer.value_or(received{});
  }
};

} // namespace terrace::actors::test
