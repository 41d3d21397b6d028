// REMOTE STORE: the mover of a remote tier, which is one Valkey or Redis server: its connection, and the objects on
// their way there and back. It is also the keeper of the tier's index, so it learns which objects the tier has dropped,
// and removes their values.
//
// The tier belongs to one run of one daemon: a random key names its objects, so nobody else finds them, and nothing is
// found after a restart. Values that are left over end with their lifetime.
//
// An object is one command for each part of at most 1 MiB. Payloads are received into host memory where they shall
// lie, and sent from there. Each part is verified when it has come. Reads go before writes. While there is no
// connection, requests are answered `away` at once. Whoever waits is answered when the kernel no longer accesses its
// memory. A server that neither sends nor takes a byte for a second, while something is asked of it, has failed.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/remote/remote_plan.hpp"
#include "metrics/tier_probe.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/value_header.hpp"
#include "runtime/answer.hpp"
#include "runtime/home.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/mover_messages.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <sys/socket.h>
#include <unordered_map>

namespace terrace::actors {

/// Whether the store is there. The actor sets it; any thread may read it.
class remote_service final : public tier_availability {
 public:
  bool reads() const override { return serves_.load(std::memory_order_acquire); }
  bool writes() const override { return reads(); }
  std::string reason() const override;
  std::string notice() const override;

  void serves();
  void stops(std::string why);
  void set_notice(std::string notice);

 private:
  std::atomic<bool> serves_{false};
  mutable std::mutex mutex_;
  std::string why_ = "it is connecting";
  std::string notice_;
};

struct remote_store_arguments {
  remote_plan plan;
  std::shared_ptr<remote_service> service;
  std::shared_ptr<read_meter> meter;
  std::shared_ptr<metrics::tier_probe> probe;
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
};

class remote_store {
 public:
  struct shell {
    const char* name = "remote store";
    std::unique_ptr<remote_store> work;
  };
  using interface = disk_set_actor::extend<caf::reacts_to<runtime::io_done>>;
  using self_pointer = caf::stateful_actor<shell, runtime::homed<interface::base>>*;

  static constexpr std::chrono::milliseconds silence_max{1'000};

  remote_store(self_pointer self, remote_store_arguments arguments);
  ~remote_store();

  // ---- called by the actor ----

  caf::result<move_answer> on_move(const moved_objects& objects, bool writes);
  void on_changes(const index_changes& changes);
  void on_io_done(const runtime::io_done& done);

 private:
  enum class phase : uint8_t { down, connecting, greeting, ready, closing };

  /// One request of the tier.
  struct transfer {
    moved_objects moved;
    bool writes = false;
    remote::realm_space space{};
    answer<move_answer> reply;
    move_answer outcome;
    size_t parts_left = 0;
  };
  /// One command to the store.
  struct step {
    std::shared_ptr<transfer> of; ///< null: a value is removed
    size_t object = 0;
    uint32_t part = 0;
    remote::remote_identity identity{};
    std::array<std::byte, remote::value_header_bytes> header{}; ///< that was received
    uint64_t bytes = 0;                                         ///< of the payload in this part

    bool reads() const { return of && !of->writes; }
    const moved_object& moved() const { return of->moved.objects[object]; }
    std::span<std::byte> payload() const;
  };
  using step_ptr = std::shared_ptr<step>;
  struct incoming {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    iovec area{};
    keep_alive owner; ///< the step whose value is received: its header, and the memory of its payload
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    resp::reply_queue::part part;
  };

  // ---- the connection ----
  void connect();
  void on_connected(int32_t result);
  void on_ready();
  void receive();
  void on_received(int32_t bytes);
  void send();
  void on_sent(int32_t bytes);
  void close(const std::string& why);
  void lose();
  bool in_kernel() const { return connecting_ || receiving_ || sending_; }
  void watch();
  void on_tick();
  void submit(runtime::io_request request, uint64_t tag);
  void after(std::chrono::nanoseconds time, uint64_t tag);

  // ---- commands ----
  void pump();
  bool begin_next(std::deque<step_ptr>& from);
  void begin(step& next);
  void write(step& next);
  void finish(const remote::finished_command& finished);
  void finish_read(step& done, const remote::finished_command& finished);
  void end(step& ended, move_outcome outcome);
  void to_read(uint64_t before) const;

  self_pointer self_;
  remote_store_arguments with_;
  std::mt19937_64 random_;
  remote::breaker breaker_{{.failures_in_a_row = 1}};
  phase phase_ = phase::down;
  std::string why_, warned_;
  std::shared_ptr<unique_fd> socket_;
  runtime::operation_id connect_id_{};
  bool connecting_ = false, receiving_ = false, sending_ = false, ticking_ = false;
  uint64_t progress_ = 0, seen_progress_ = 0; ///< receives and sends that have moved something
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  remote::byte_window window_;
  std::deque<step_ptr> reads_, writes_; ///< that wait; the latter with removals
  std::deque<step_ptr> sent_;           ///< in the order of their replies
  uint64_t bytes_to_read_ = 0;
  uint64_t refused_values_ = 0;
  std::unordered_map<space_id, remote::realm_space> spaces_; ///< that have been written
  std::unique_ptr<remote::valkey_connection> server_;        ///< set while there is a connection
};

/// Spawns it at `home`; it connects at once.
disk_set_actor spawn_remote_store(caf::actor_system& system, const runtime::home& home,
                                  remote_store_arguments arguments);

} // namespace terrace::actors
