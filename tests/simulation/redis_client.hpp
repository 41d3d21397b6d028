// A Redis client of the simulated daemon: it sends commands, several at a time, over a real socket whose bytes move in pieces,
// and tells the model what it asked for and was told. What it does, and when, its seed decides.
#pragma once

#include "client_world.hpp"
#include "value_model.hpp"

#include "base/unique_fd.hpp"
#include "protocol/resp/reply_reader.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::simulation {

/// Where Redis clients of a trust group connect.
struct redis_door {
  std::string path;
  std::string password; ///< empty: none is needed
};

/// What all Redis clients share.
struct redis_world {
  client_world& all;
  value_model& values;
  std::vector<std::pair<uint32_t, redis_door>> doors; ///< with their groups
  uint32_t keys = 8;                                  ///< of a group
  size_t bytes_most = 200;                            ///< of a value
  std::chrono::nanoseconds
      patience{}; ///< the daemon serves a command, and lets a client not read, for so long
};

class redis_client {
 public:
  redis_client(redis_world& world, uint32_t number, size_t door, uint64_t seed, uint32_t deeds_left);

  void start() { act_later(); }
  bool finished() const { return left_ == 0 && (!connected() || asked_.empty()); }
  /// From now on it only reads.
  void wind_up();
  /// The daemon has gone.
  void lose_daemon();
  void leave();
  std::string unanswered() const;

  // ---- for the loop that looks at sockets ----
  int descriptor() const { return socket_.get(); }
  short wants() const;
  void ready();

  uint64_t answers() const { return answers_; }
  uint64_t errors() const { return errors_; }

 private:
  struct item {
    resp::reply_type type{};
    std::string text;
    int64_t number = 0;
    size_t items = 0;
  };
  using reply = std::vector<item>;
  using handler = std::function<void(const reply&)>;
  struct asked {
    std::string name;
    std::chrono::nanoseconds at{};
    handler done;
  };
  using key = value_model::key;
  /// Bytes to be sent, with the value whose last byte is theirs.
  struct piece {
    std::string bytes;
    daemon_model::version completes = 0;
  };

  bool connected() const { return socket_.get() >= 0; }
  void act();
  void act_later();
  void connect();
  void greet();
  unique_fd open_socket();
  void disconnect();
  void send_some();
  void receive_some();
  void take_items();
  void take(const reply& all);
  size_t part_of(size_t bytes);
  void say(const std::string& what) const;

  /// A word of a command, and the version whose bytes it has.
  struct word {
    word(std::string what, daemon_model::version version = 0) : text(std::move(what)), value(version) {}
    word(const char* what) : text(what) {}
    std::string text;
    daemon_model::version value = 0;
  };
  /// Sends a command. `done` checks its reply, unless that is an error which may come.
  void ask(const std::vector<word>& words, handler done);
  void count_keys(const char* command, const std::vector<key>& keys, std::function<void(bool)> done);
  bool is_allowed(const std::string& error) const;
  void broke(const std::string& what) const;

  // ---- what it does (redis_deeds.cpp) ----
  void draw_mix();
  void do_one();
  void set(bool many);
  void get(bool many);
  void count();
  void remove();
  void echo();
  void look_around();
  void be_refused();
  void break_off();
  void be_hostile();
  void pause();
  void stop_reading();

  key any_key();
  std::vector<key> some_keys();
  static std::string name_of(const key& which) { return "key " + std::to_string(which.number); }
  word new_value(const key& which);
  static bool is_error(const reply& all) { return all.front().type == resp::reply_type::error; }

  redis_world& world_;
  uint32_t number_;
  uint32_t group_;
  redis_door door_;
  seeded_random random_;
  uint32_t left_; ///< deeds
  std::vector<uint32_t> mix_;
  uint64_t sockets_ = 0;
  value_model::connection connection_ = 0;
  bool acting_ = false;
  bool reads_ = true;
  bool breaks_off_ = false;    ///< it disconnects once all is sent
  bool may_be_closed_ = false; ///< by the daemon, because of what this client did
  std::chrono::nanoseconds reads_since_{}, heard_{};
  simulated_peer process_;
  unique_fd socket_;
  std::deque<unique_fd> strange_; ///< sockets with bytes that no correct client sends
  resp::reply_reader reader_;
  std::deque<piece> line_; ///< to be sent
  std::deque<asked> asked_;
  reply reply_; ///< so far
  uint64_t answers_ = 0, errors_ = 0, echoes_ = 0;
};

/// All Redis clients of a run. There are none in most of them.
class redis_clients {
 public:
  redis_clients(client_world& world, daemon_model& model) : values_(model), world_{world, values_} {}

  redis_world& world() { return world_; }
  value_model& values() { return values_; }
  void add(uint64_t seed, uint32_t number, uint32_t deeds_left);

  bool finished() const;
  void each(const std::function<void(redis_client&)>& what);
  /// Those whose sockets are ready get a turn within `most`.
  void look(seeded_random& random, std::chrono::nanoseconds most);

 private:
  value_model values_;
  redis_world world_;
  std::vector<std::unique_ptr<redis_client>> all_;
  std::vector<bool> scheduled_;
};

} // namespace terrace::simulation
