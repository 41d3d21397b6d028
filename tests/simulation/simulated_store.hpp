// A Valkey or Redis server for the simulated daemon's remote tier: it serves real sockets in the daemon's thread, at times that
// the seed decides, and it may do whatever a server does in practice: answer late, in pieces, with errors or with other bytes,
// stand still, lose what it has, die and come back.
//
//   simulated_store store(events, seed, path, store_habits::draw(random));
//   store.look();      // whenever something was done to a socket
#pragma once

#include "random.hpp"
#include "scheduler.hpp"

#include "base/unique_fd.hpp"
#include "protocol/resp/command_reader.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace terrace::simulation {

struct store_habits {
  std::chrono::nanoseconds most{200'000}; ///< from being asked to answering
  std::string password;                   ///< empty: none is needed
  bool speaks_resp3 = true;               ///< and so tells which keys have changed
  // Of a million commands, or of a million keys that are asked for:
  uint32_t late = 0;   ///< it takes up to `latest`
  uint32_t cut = 0;    ///< a part of the reply comes later
  uint32_t fails = 0;  ///< it is answered with an error
  uint32_t wrong = 0;  ///< a value has other bytes, another length, or is that of another key
  uint32_t forges = 0; ///< an encrypted value has the seal and the bytes of another one
  uint32_t evicts = 0; ///< the store has evicted it
  std::chrono::nanoseconds latest{std::chrono::seconds(3)};

  /// Swarm testing: in half of all runs it does none of this.
  static store_habits draw(seeded_random& random);
};

class simulated_store {
 public:
  using trace = std::function<void(const std::string&)>;

  /// `events` outlives it. It listens at `path`, in the file system.
  simulated_store(scheduler& events, uint64_t seed, std::string path, store_habits habits, trace to);
  ~simulated_store();
  simulated_store(const simulated_store&) = delete;
  simulated_store& operator=(const simulated_store&) = delete;

  /// What has become possible is done later.
  void look();

  /// From now on, each time within `most`, something happens to it: it dies, comes back with or without what it had, evicts,
  /// stands still or goes on.
  void live_dangerously(std::chrono::nanoseconds most);
  /// What another machine does that shares the store.
  enum class other_clear : uint8_t {
    begins, ///< it is about to clear everything
    known,  ///< the daemon has read the new token, some time ago
    lost,   ///< the new token was replaced or lost before
  };
  /// From now on, each time within `most`, another machine clears everything: it replaces the token that `key` names, once the
  /// daemon knows the present one. `told` hears of it, and `within` a time after the daemon was sent the token.
  void share(std::string key, std::chrono::nanoseconds most, std::chrono::nanoseconds within,
             std::function<void(other_clear)> told);
  bool has_token(const std::string& key) const { return values_.contains(key); }
  /// Another machine clears everything now. Precondition: there is a token that `key` names.
  void clear_as_other_machine(const std::string& key);
  /// From now on it serves as it should, and nobody else uses it.
  void recover();
  /// The daemon is killed: what it has sent may have arrived. Until `serve_daemon` nobody connects.
  void lose_daemon();
  void serve_daemon();

  size_t keys() const { return values_.size(); }
  uint64_t served() const { return served_; }

 private:
  struct value {
    std::string bytes;
    std::optional<std::chrono::nanoseconds> ends;
  };
  struct client {
    uint64_t number = 0;
    unique_fd socket;
    resp::command_reader reader;
    bool admitted = false;
    bool tracks = false;
    std::set<std::string> asked;                 ///< keys of which it is told when they change
    std::string replies;                         ///< to be sent, in their order
    scheduler::event_id receives = 0, sends = 0; ///< 0: none
  };
  using words = std::span<const std::string_view>;

  void something_happens();
  void other_machine_clears();
  void sent_token(uint64_t to, const std::string& token);
  void look_at_token();
  void listen();
  void close(bool answers_what_came);
  void accept();
  void receive(client& from);
  void serve(client& from, words command);
  void answer(client& to, words command, std::string& reply);
  void greet(client& to, words command, std::string& reply);
  void set(client& by, words command, std::string& reply);
  void get(client& by, const std::string& key, std::string& reply);
  void spoil(std::string& bytes);
  const std::string& any_value();
  void send(client& to);
  void send_later(client& to, std::chrono::nanoseconds after);
  bool has(client& by, const std::string& key);
  void erase(const std::string& key);
  void tell(const std::string& key);
  std::chrono::nanoseconds delay(std::chrono::nanoseconds most);
  void say(const std::string& what);

  scheduler& events_;
  seeded_random random_;
  std::string path_;
  store_habits habits_;
  trace trace_;
  unique_fd listener_; ///< none: it is not there
  bool stands_ = false;
  bool is_there_ = true; ///< it lives, and listens unless the daemon is being killed
  std::chrono::nanoseconds happens_most_{};
  scheduler::event_id accepts_ = 0, happens_ = 0, clears_ = 0;
  struct shared {
    std::string key;
    std::chrono::nanoseconds most{}, within{};
    std::function<void(other_clear)> told;
    std::string known; ///< the token that the daemon has surely read; empty: none
    std::string anew;  ///< the token of the other machine's clear, until it is known or lost; empty: none
  } shared_;
  uint64_t life_ = 0; ///< of the daemon
  uint64_t last_client_ = 0, served_ = 0;
  std::list<client> clients_;
  std::map<std::string, value> values_;
};

} // namespace terrace::simulation
