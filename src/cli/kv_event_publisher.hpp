// Publishes batches of events over ZeroMQ as vLLM does: a PUB socket, and a ROUTER socket at which subscribers ask for batches
// that they missed.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::cli {

struct publisher_options {
  std::string publish; ///< ZeroMQ endpoint, such as tcp://127.0.0.1:5557
  std::string replay;  ///< empty: subscribers cannot ask for earlier batches
  std::string topic;
};

/// Messages: topic, sequence number (8 bytes, big-endian, from 0 on), batch. The answer to a replay request
/// with a number has one message for each kept batch from that number on, each behind an empty frame, and
/// then one with the number -1 and an empty batch. Used by one thread; another thread serves replays.
class kv_event_publisher {
 public:
  static constexpr size_t batches_kept = 10'000;
  static constexpr size_t bytes_kept = 64 << 20;

  /// Errors: an endpoint cannot be bound.
  static outcome<std::unique_ptr<kv_event_publisher>> open(const publisher_options& options);
  ~kv_event_publisher();

  void publish(std::string batch);

 private:
  struct sockets;
  explicit kv_event_publisher(std::unique_ptr<sockets> bound);
  std::unique_ptr<sockets> sockets_;
};

} // namespace terrace::cli
