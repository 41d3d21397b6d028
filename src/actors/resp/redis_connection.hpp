// REDIS CONNECTION: one Redis client's connection: its socket, its commands in flight, and the values that it receives or
// sends.
//
// Commands are served in their order. Commands of one kind that have come together are served together
// (`redis_batch`). While commands are served nothing more is received, so a client that sends faster than it
// is served fills its socket. A value longer than the reader's buffer is received into its place in the
// arena, and sent from there.
//
// redis_connection.cpp: receiving, the order of things, and batches that wait for nobody; redis_sending.cpp: replies;
// redis_commands.cpp: from commands to batches; redis_serving.cpp: the other batches, and long values, as coroutines. It belongs
// to one actor.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/resp/redis_session.hpp"
#include "actors/resp/value_transfer.hpp"
#include "base/error.hpp"
#include "base/idle_pool.hpp"
#include "connection/client_log.hpp"
#include "index/sha256.hpp"
#include "metrics/request_probe.hpp"
#include "protocol/resp/command_reader.hpp"
#include "protocol/resp/reply.hpp"
#include "runtime/task.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/small_values.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace terrace::actors {

// Commands of a Redis client that are served together: they read, or write, or remove some keys at a time.
//
// Pure: used by one thread at a time.

class redis_batch {
 public:
  enum class work : uint8_t { none, read, write, remove, count };
  static constexpr size_t keys_max = 32; ///< keys whose objects may be held at a time
  static constexpr size_t items_max = 256;
  static constexpr size_t text_bytes_max = 16 << 10; ///< bytes of ready replies

  /// A part of the replies, in the order of the commands.
  struct item {
    enum class kind : uint8_t {
      text,    ///< a ready reply is in `text`
      value,   ///< the value of the key, a null, or an error
      element, ///< an element of an array: a value or a null
      count,   ///< the key counts if it exists or was removed
      sum,     ///< the end of a counting command: the number
      stored,  ///< the end of a command that stored one value
      part,    ///< one of several values that a command stores
      parts,   ///< the end of such a command
      forget,  ///< a command ends early: its number or failure is not sent
      dbsize,
      info,
    };
    kind what = kind::text;
    size_t key = 0;
    std::string text{};
  };

  work what = work::none;
  std::shared_ptr<object_batch> objects = std::make_shared<object_batch>();
  std::vector<std::string_view> contents; ///< contents of the stored values, parallel to the objects
  std::vector<item> items;
  size_t text_bytes = 0;

  /// True if a key may be added for this work.
  bool takes(work more) const {
    return (what == work::none || what == more) && objects->size() < keys_max && has_room();
  }
  bool has_room() const { return items.size() < items_max && text_bytes < text_bytes_max; }
  /// Adds a ready reply.
  void say(std::string_view text) {
    if (items.empty() || items.back().what != item::kind::text)
      items.push_back({});
    items.back().text.append(text);
    text_bytes += text.size();
  }
  /// Returns the number of the key; each key is in the batch once.
  size_t add(work more, const object_key& key) {
    what = more;
    for (size_t i = 0; i < objects->size(); ++i)
      if (objects->keys[i] == key)
        return i;
    objects->keys.push_back(key);
    objects->parents.emplace_back();
    objects->payload_bytes.push_back(0);
    contents.emplace_back();
    return objects->size() - 1;
  }
  /// Sets the value of a key. The last one counts, because nobody sees those before it.
  void set(size_t key, std::string_view bytes) {
    contents[key] = bytes;
    objects->payload_bytes[key] = bytes.size();
  }
  bool empty() const { return items.empty(); }
};

// What all connections of a socket for Redis clients share.

/// Set up before the socket is open; safe on any thread.
struct redis_environment {
  std::shared_ptr<const connection_environment>
      group;            ///< the group's limits, clients and logs are those of its other clients
  std::string password; ///< empty: no password is needed
  std::shared_ptr<metrics::resp_probe> probe;
  std::shared_ptr<resp::value_turns> turns = std::make_shared<resp::value_turns>();
};
using redis_connection_ptr = std::shared_ptr<const redis_environment>;

class redis_connection {
 public:
  struct shell {
    const char* name = "resp";
    std::unique_ptr<redis_connection> work;
  };
  using interface = connection_actor::extend<caf::reacts_to<begin_notice>, caf::reacts_to<runtime::io_done>>;
  using self_pointer =
      caf::stateful_actor<shell,
                          runtime::short_turns<runtime::homed<interface::base, runtime::woken::next>>>*;

  redis_connection(self_pointer self, unique_fd socket, client_ptr record, redis_connection_ptr redis);
  ~redis_connection();

  // ---- called by the actor ----

  void on_begin();
  void on_io_done(const runtime::io_done& done);
  void on_drain(); ///< ends after what is in flight
  void on_leave(); ///< makes room for another client, because it has not said who it is

 private:
  using item = redis_batch::item;
  /// After this many notices a batch asks the tier, whose answer shows that it has read them.
  static constexpr size_t told_max = 32;
  /// Time for which the answer to a wrong password is kept back.
  static constexpr auto guess_delay = std::chrono::seconds(1);

  // ---- the socket (redis_connection.cpp) ----
  void receive();
  void receive_value(std::span<std::byte> into, keep_alive owner);
  void on_received(int32_t bytes);
  void on_hang_up(int32_t events);
  void pump();
  void finish_if_done();
  void drop_rest();
  void violate(const std::string& text); ///< replies and ends
  void watch_hang_up(uint32_t events);
  void await_by(size_t what, clock::time_point at);
  void on_timer();
  void sweep();
  void begin_context();
  void on_guess();

  // ---- replies (redis_sending.cpp) ----
  void send();
  void send_part();
  void send_quietly();
  bool may_be_quiet() const;
  void on_sent(int32_t bytes);

  // ---- commands (redis_commands.cpp) ----
  bool admit(redis_batch& into);
  bool take_step();
  void collect(redis_batch& into);
  bool collect_step(redis_batch& into);
  bool begin_command(redis_batch& into);
  bool collect_call(redis_batch& into);
  bool collect_keys(redis_batch& into, redis_batch::work work, item::kind as);
  bool collect_pairs(redis_batch& into);
  bool end_step();
  void refuse_call(redis_batch& into, const std::string& why);
  bool step_is_value() const { return step_ && step_->what == resp::reader_step::kind::value; }
  bool serves_value() const; ///< the long word that begins is a value to be stored
  object_key key_of(std::string_view key);
  std::string info(uint64_t keys) const;

  // ---- at once (redis_connection.cpp) ----
  bool serve_at_once(const redis_batch& batch); ///< false: nothing was done, and the tier has to be asked
  bool read_at_once(const redis_batch& batch);

  // ---- serving (redis_serving.cpp) ----
  task<> serve(std::shared_ptr<redis_batch> batch);
  task<> serve_reads(std::shared_ptr<redis_batch> batch);
  task<> reply_value(const value_subject& of, const found_values& found, size_t key, bool element);
  task<result<bool>> reserve(const value_subject& of, reserved_values& values);
  task<error> await_turn(const value_subject& of, reserved_values& values);
  void on_turn();
  task<result<bool>> store(const value_subject& of, std::span<const std::string_view> contents);
  task<> serve_writes(std::shared_ptr<redis_batch> batch);
  task<> serve_removals(std::shared_ptr<redis_batch> batch);
  task<> serve_counts(std::shared_ptr<redis_batch> batch);
  task<> serve_value();
  task<> skip_value();
  task<> await_room();
  void served();
  void add_value(const object_place& place, keep_alive owner);
  void reply_item(const item& one, const error& failure);
  void reply_failure(const error& why);

  struct incoming {
    std::shared_ptr<unique_fd> socket;
    resp::command_reader reader;
    msghdr message{};
    std::array<iovec, 2> areas{};
    keep_alive owner;               ///< owner of a value that is being received
    std::vector<std::byte> dropped; ///< place of what comes behind a violation
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    resp::reply_queue::part part;
    bool counted = false; ///< the part counts as sent
    runtime::quiet_send quiet;
  };
  /// The timers.
  enum : size_t { for_admission, for_rest, for_sending, for_serving, for_guess, times };

  self_pointer self_;
  redis_connection_ptr redis_;
  const connection_environment& environment_;
  client_ptr record_;
  client_log log_;
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  resp::redis_session talk_;
  resp::reply_queue replies_;
  sha256 hasher_;
  small_values small_; ///< values of the batch that is served at once
  size_t told_ = 0;    ///< notices of uses sent to the host tier since its last answer
  space_ptr space_;
  context_ptr context_; ///< context of what is being served; null: nothing is
  idle_pool<caf::actor> idle_loads_;

  std::optional<resp::reader_step> step_; ///< a step that is not yet completely served
  size_t next_word_ = 0;                  ///< its next word
  bool begun_ = false;                    ///< its begin was handled
  std::optional<error> violation_;        ///< reported after the commands before it
  const resp::command_row* calling_ = nullptr;
  error failure_;      ///< failure of a command in parts
  bool skips_ = false; ///< the rest of the command is skipped, because it was refused
  uint64_t sum_ = 0;

  bool receiving_ = false, sending_ = false, serving_ = false, pumping_ = false;
  bool eof_ = false, drains_ = false, ends_ = false, admitted_ = false;
  bool drops_rest_ = false;
  bool guessed_ = false;      ///< it gave a wrong password, whose answer and all that follows is late
  size_t received_value_ = 0; ///< bytes of the last receive into a value
  std::unique_ptr<task_event> value_came_; ///< set while somebody waits for a part of a value
  std::unique_ptr<task_event> turn_came_;  ///< set while somebody waits for the turn to replace a value
  std::unique_ptr<task_event> room_came_;  ///< set while somebody waits until replies are sent
  std::array<clock::time_point, times> due_{};
  clock::time_point timer_at_ = clock::time_point::max();
  task<> progress_; ///< last, because it refers to the others
};

/// Spawns a connection at `home`, which owns the socket. It begins at once. `who`: the client; a loopback
/// client is anonymous.
connection_actor spawn_redis_connection(caf::actor_system& system, const runtime::home& home,
                                        unique_fd socket, const peer& who, connection_id id,
                                        redis_connection_ptr redis);

} // namespace terrace::actors
