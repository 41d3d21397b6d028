// Both directions of the socket between the daemon and the process of a GPU: messages in and out, each with
// at most one operation in the ring.
#pragma once

#include "base/unique_fd.hpp"
#include "gpu/process/process_message.hpp"
#include "protocol/descriptors.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_control_block.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

/// A message, and its descriptor.
struct process_packet {
  gpu::process_message message;
  std::shared_ptr<unique_fd> descriptor; ///< null: none
};

/// Belongs to one homed actor, which passes it the completions with its tags.
class packet_socket {
 public:
  static constexpr uint64_t receive_tag = 1ULL << 60;
  static constexpr uint64_t send_tag = receive_tag + 1;

  /// The last user closes `socket`.
  packet_socket(std::shared_ptr<unique_fd> socket, runtime::io_port& port, caf::strong_actor_ptr owner);

  /// Submits a receive. Call it once, and again after each received message.
  void receive();
  /// Handles the completion of a receive. Returns nothing at the end of file or if the socket is broken.
  /// Error: the bytes are not a message.
  std::optional<result<process_packet>> received(int32_t bytes);

  void send(process_packet packet);
  /// Handles the completion of a send. Returns false if the other side accepts no more.
  bool sent(int32_t bytes);

  /// True while a send is in the ring.
  bool sends() const { return out_ != nullptr; }

 private:
  struct incoming {
    std::shared_ptr<unique_fd> socket;
    std::vector<uint8_t> bytes;
    protocol::incoming_message message;
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    std::vector<uint8_t> bytes;
    std::shared_ptr<unique_fd> descriptor;
    protocol::outgoing_message message;
  };
  void send_next();

  std::shared_ptr<unique_fd> socket_;
  runtime::io_port& port_;
  caf::strong_actor_ptr owner_;
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_; ///< the message in the ring; null: none
  std::deque<process_packet> line_;
};

} // namespace terrace::actors
