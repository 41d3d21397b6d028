// A client of the fuzzer: what it sent, what was answered, and what it learned from the answers.
#pragma once

#include "tests/support/raw_client.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace terrace::fuzz {

/// What the clients of a session know together: a lease may be used by others than its owner.
struct shared_knowledge {
  std::deque<std::vector<uint8_t>> leases; ///< the latest
  std::deque<std::vector<uint8_t>> sessions;
};

class verb_client {
 public:
  verb_client(unique_fd socket, std::shared_ptr<unique_fd> process, shared_knowledge& shared);

  /// Gets in line behind what has not been sent yet. `counted`: the bytes are one frame with this id and verb, which must
  /// be answered; others may leave the daemon in the middle of a frame, and from then on no answer is expected.
  void queue(std::span<const uint8_t> bytes, unique_fd descriptor = {});
  void queue_frame(uint64_t request, protocol::kind verb, std::vector<uint8_t> bytes,
                   unique_fd descriptor = {});

  /// Hands at most so many bytes of the line to the socket.
  void send(size_t bytes_max = SIZE_MAX);

  /// Reads what has come, unless the client has stopped reading.
  void receive();

  void close() { socket_.close(); }
  void end_process();

  bool open() const { return socket_.descriptor() >= 0; }
  bool ended() const { return ended_; }           ///< by the daemon
  bool answered() const { return open_.empty(); } ///< all that was queued, as far as that can be known
  bool counts() const { return !wild_; }
  const std::map<uint64_t, protocol::kind>& unanswered() const { return open_; }

  uint64_t next_request = 1;
  bool reads = true;
  std::vector<uint32_t> spaces, regions;
  std::vector<uint64_t> reservations;
  std::optional<uint64_t> clears; ///< its request to clear everything, while nobody asks for anything else
  bool cleared = false;           ///< that has been answered

  /// Answers that were no errors, and errors, by the verb; what came, folded into one number.
  static constexpr size_t verbs = protocol::last_request + 1;
  std::array<uint32_t, verbs> served{}, refused{};
  uint64_t trace = 0;

 private:
  struct part {
    std::vector<uint8_t> bytes;
    unique_fd descriptor;
  };
  void take(const test::received& frame);
  void learn(const test::received& frame);

  test::raw_client socket_;
  std::shared_ptr<unique_fd> process_;
  shared_knowledge& shared_;
  std::deque<part> line_;
  std::map<uint64_t, protocol::kind> open_;
  bool wild_ = false;
  bool ended_ = false;
};

} // namespace terrace::fuzz
