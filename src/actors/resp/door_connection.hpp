// DOOR: one Redis client's connection: its socket, its commands in flight, and the values that it receives or
// sends.
//
// Commands are served in their order. Commands of one kind that have come together are served together
// (door_batch.hpp). While commands are served nothing more is received, so a client that sends faster than it
// is served fills its socket. A value longer than the reader's buffer is received into its place in the
// arena, and sent from there.
//
// door_connection.cpp: receiving, and the order of things; door_sending.cpp: replies; door_commands.cpp: from
// commands to batches; door_at_once.cpp: batches that wait for nobody; door_serving.cpp: the others, and long
// values, as coroutines. It belongs to one actor.
#pragma once

#include "actors/resp/door_batch.hpp"
#include "actors/resp/door_environment.hpp"
#include "actors/resp/talk.hpp"
#include "actors/resp/value_transfer.hpp"
#include "base/idle_pool.hpp"
#include "index/sha256.hpp"
#include "protocol/resp/command_reader.hpp"
#include "protocol/resp/reply_line.hpp"
#include "runtime/task_event.hpp"
#include "tier/objects/small_values.hpp"

#include <array>
#include <optional>

#include <sys/socket.h>

namespace terrace::actors {

class door_connection {
 public:
  struct shell {
    const char* name = "resp";
    std::unique_ptr<door_connection> work;
  };
  using interface = connection_actor::extend<caf::reacts_to<begin_notice>, caf::reacts_to<runtime::io_done>>;
  using self_pointer = caf::stateful_actor<shell, runtime::short_turns<runtime::homed<interface::base>>>*;

  door_connection(self_pointer self, unique_fd socket, client_ptr record, door_ptr door);
  ~door_connection();

  // ---- called by the actor ----

  void on_begin();
  void on_io_done(const runtime::io_done& done);
  void on_drain(); ///< ends after what is in flight
  void on_leave(); ///< makes room for another client, because it has not said who it is

 private:
  using item = door_batch::item;
  /// After this many notices a batch asks the tier, whose answer shows that it has read them.
  static constexpr size_t told_max = 32;

  // ---- the socket (door_connection.cpp) ----
  void receive();
  void receive_value(std::span<std::byte> into, keep_alive owner);
  void on_received(int32_t bytes);
  void on_hang_up(int32_t events);
  void pump();
  void finish_if_done();
  void violate(const std::string& text); ///< replies and ends
  void watch_hang_up(uint32_t events);
  void await_by(size_t what, clock::time_point at);
  void on_timer();
  void sweep();
  void begin_context();

  // ---- replies (door_sending.cpp) ----
  void send();
  void send_part();
  void send_quietly();
  bool may_be_quiet() const;
  void on_sent(int32_t bytes);

  // ---- commands (door_commands.cpp) ----
  bool admit(door_batch& into);
  bool take_step();
  void collect(door_batch& into);
  bool collect_step(door_batch& into);
  bool begin_command(door_batch& into);
  bool collect_call(door_batch& into);
  bool collect_keys(door_batch& into, door_batch::work work, item::kind as);
  bool collect_pairs(door_batch& into);
  bool end_step();
  void refuse_call(door_batch& into, const std::string& why);
  bool step_is_value() const { return step_ && step_->what == resp::reader_step::kind::value; }
  bool serves_value() const; ///< the long word that begins is a value to be stored
  object_key key_of(std::string_view key);
  std::string info(uint64_t keys) const;

  // ---- at once (door_at_once.cpp) ----
  bool serve_at_once(const door_batch& batch); ///< false: nothing was done, and the tier has to be asked
  bool read_at_once(const door_batch& batch);

  // ---- serving (door_serving.cpp) ----
  task<> serve(std::shared_ptr<door_batch> batch);
  task<> serve_reads(std::shared_ptr<door_batch> batch);
  task<> reply_value(const value_subject& of, const found_values& found, size_t key, bool element);
  task<result<bool>> store(const value_subject& of, std::span<const std::string_view> contents);
  task<> serve_writes(std::shared_ptr<door_batch> batch);
  task<> serve_removals(std::shared_ptr<door_batch> batch);
  task<> serve_counts(std::shared_ptr<door_batch> batch);
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
    keep_alive owner; ///< owner of a value that is being received
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    resp::reply_line::part part;
    bool counted = false; ///< the part counts as sent
    runtime::quiet_send quiet;
  };
  /// The timers.
  enum : size_t { for_admission, for_rest, for_sending, for_serving, times };

  self_pointer self_;
  door_ptr door_;
  const connection_environment& environment_;
  client_ptr record_;
  client_log log_;
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  resp::talk talk_;
  resp::reply_line replies_;
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
  size_t received_value_ = 0;              ///< bytes of the last receive into a value
  std::unique_ptr<task_event> value_came_; ///< set while somebody waits for a part of a value
  std::unique_ptr<task_event> room_came_;  ///< set while somebody waits until replies are sent
  std::array<clock::time_point, times> due_{};
  clock::time_point timer_at_ = clock::time_point::max();
  task<> progress_; ///< last, because it refers to the others
};

/// Spawns a connection at `home`, which owns the socket. It begins at once. `who`: the client; a loopback
/// client is anonymous.
connection_actor spawn_door_connection(caf::actor_system& system, const runtime::home& home, unique_fd socket,
                                       const peer& who, connection_id id, door_ptr door);

} // namespace terrace::actors
