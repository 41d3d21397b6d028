// A client of the simulated daemon: it speaks the protocol over a real socket whose bytes it sends and receives in pieces,
// and tells the model what it asked for, was told and reads. What it does, and when, its seed decides.
#pragma once

#include "client_world.hpp"

#include "base/unique_fd.hpp"
#include "protocol/frame_decoder.hpp"
#include "tests/support/raw_client.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace terrace::simulation {

class simulated_client {
 public:
  simulated_client(client_world& world, uint32_t number, uint32_t group, uint64_t seed, uint32_t deeds_left);
  ~simulated_client();

  /// Begins to act.
  void start();
  /// It has done all it wanted, and was answered.
  bool finished() const { return left_ == 0 && (!connected() || open_.empty()); }
  /// From now on it only reads, whatever it did before.
  void wind_up();
  /// The daemon has gone.
  void lose_daemon();
  /// Its sockets are closed, and its process ends.
  void leave();
  std::string unanswered() const;

  // ---- for the loop that looks at sockets ----
  int descriptor() const { return socket_.get(); }
  short wants() const;
  void ready(); ///< to be scheduled: what `wants` waits for may be done

  uint32_t group() const { return group_; }
  uint64_t answers() const { return answers_; }
  uint64_t errors() const { return errors_; }

 private:
  using builder = flatbuffers::FlatBufferBuilder;
  struct answer {
    protocol::kind kind{};
    std::span<const uint8_t> body;
    unique_fd descriptor;
    bool good() const { return kind != protocol::kind::error; }
    errc code() const;
  };
  using handler = std::function<void(answer&)>;
  struct asked {
    protocol::kind verb{};
    uint64_t at = 0;
    handler done;
    std::function<void()> lost; ///< the connection has ended
    std::chrono::nanoseconds since{};
  };
  using prompt = client_world::prompt;
  struct lease {
    std::vector<uint8_t> id;
    prompt of;
    uint64_t asked = 0;
    size_t busy = 0;    ///< requests that use it
    uint64_t kept = 0;  ///< in the model
    uint64_t named = 0; ///< the number of its lookup; 0: none
    bool read = false;  ///< in place
  };
  struct place {
    named_object object;
    wire::Location where;
    uint64_t asked = 0;
    daemon_model::version seen = 0;
  };
  struct reading {
    std::vector<uint8_t> lease;
    std::vector<place> places;
  };
  struct mapping {
    std::byte* data = nullptr;
    uint64_t bytes = 0;
  };

  struct session {
    uint64_t number = 0; ///< in this client
    std::vector<uint8_t> id, digest;
    prompt at; ///< what it has
    bool busy = false;
    uint64_t kept = 0; ///< its saved tail, in the model
  };

  bool connected() const { return socket_.get() >= 0; }
  bool greeted() const { return !spaces_.empty() && region_ != 0; }

  // ---- its life (simulated_client.cpp) ----
  void act();
  void act_later();
  void connect();
  void greet();
  void disconnect(bool process_ends);
  void make_region();
  void register_region();
  void lose_region(const answer& why);
  void renew_region();
  void become_a_process();
  void on_greeted(answer& of);
  void unmap();
  unique_fd open_socket();
  void send_some();
  void receive_some();
  void take(protocol::frame& frame);
  template <class Build>
  void ask(protocol::kind verb, Build&& build, handler done = nullptr, std::function<void()> lost = nullptr,
           int descriptor = -1);
  void say(const std::string& what) const;
  size_t part_of(size_t bytes);

  // ---- what it does (simulated_deeds.cpp) ----
  void do_one(deed which);
  void store();
  void load(bool leased);
  void look_up(const prompt& of, bool with_lease);
  void on_found(prompt of, const std::vector<named_object>& objects, uint64_t at,
                const daemon_model::expectation& expected, const wire::LookupAnswer& told, uint64_t named);
  void read_leased();
  void release();
  void reserve();
  void write_reserved(uint64_t reservation, const std::vector<wire::Location>& places,
                      const std::vector<daemon_model::version>& versions, uint64_t at,
                      const std::shared_ptr<void>& reserved);

  void end_reserved(uint64_t reservation, const std::vector<daemon_model::version>& versions, uint64_t at,
                    const std::shared_ptr<void>& reserved);

  /// Returns false if there is no memory for it. `prefix` writes the prompt, `done` is told whether all of it is there.
  bool store_objects(const prompt& of, uint32_t first,
                     const std::function<flatbuffers::Offset<wire::Prefix>(builder&)>& prefix,
                     std::function<void(bool)> done);

  // ---- sessions and prompts (simulated_sessions.cpp) ----
  void use_session();
  session* session_of(uint64_t number);
  session& add_session(const prompt& at);
  void open_session();
  void has_session(uint64_t number, const flatbuffers::Vector<uint8_t>* id,
                   const flatbuffers::Vector<uint8_t>* digest);
  void close_session(uint64_t number);
  void fork_session(const session& from);
  void take_turn(session& of);
  void store_turn(session& of, const prompt& next);
  void save_turn(session& of, const prompt& next);
  void turn_twice();
  void end_two_turns(uint64_t number, const prompt& next, const prompt& anew,
                     const std::array<std::vector<uint8_t>, 2>& saved);
  void end_turn(uint64_t number, const prompt& now, const flatbuffers::Vector<uint8_t>* digest);
  flatbuffers::Offset<wire::Prefix> write_turn(builder& b, const session& of, const prompt& next,
                                               bool finds_tail = false) const;
  void save_prompt();
  named_object logits_of(const prompt& of) const;

  // ---- and in simulated_other_deeds.cpp ----
  void pin();
  void unpin();
  void prefetch();
  void cancel();
  void await_lookup();
  void cancel_lookup();
  lease* lease_of_lookup(uint64_t named);
  void use_cancelled_lease(uint64_t named);
  void explain();
  void revoke();
  void change_quota();
  void change_policy();
  void evict(bool moves);
  void clear(bool all);
  void look_around();
  void be_hostile();

  prompt any_prompt();
  std::vector<named_object> objects_of(const prompt& of, uint32_t first = 0) const {
    return world_.objects_of(group_, of, first);
  }
  flatbuffers::Offset<wire::Prefix> write(builder& b, const prompt& of) const {
    return world_.write_prefix(b, of);
  }
  uint32_t deadline();
  std::optional<std::vector<uint64_t>> take_slots(const std::vector<named_object>& objects);
  void free_slots(const std::vector<uint64_t>& slots);
  std::span<std::byte> slot(uint64_t number, uint32_t pool) const;
  flatbuffers::Offset<flatbuffers::Vector<const wire::Run*>>
  runs(builder& b, const std::vector<uint64_t>& slots, const std::vector<named_object>& objects) const;
  lease* any_lease();
  void map_segment(uint32_t segment, std::function<void(const mapping*)> then);
  void look_at(reading& of);
  void stop_reading();
  void read_again();
  void refused(const std::string& what) const;
  void check_wait(const asked& request);

  client_world& world_;
  uint32_t number_;
  uint32_t group_;
  seeded_random random_;
  uint32_t left_;     ///< deeds
  uint64_t life_ = 0; ///< connections and processes so far
  bool reads_ = true;
  std::chrono::nanoseconds reads_since_{};
  std::shared_ptr<void> reads_nothing_;              ///< while it does not
  std::vector<std::shared_ptr<void>> left_reserved_; ///< reservations that nobody ends before the connection
  bool acting_ = false;
  simulated_peer process_;
  unique_fd socket_;
  std::optional<protocol::frame_decoder> decoder_;
  std::deque<std::pair<std::vector<uint8_t>, unique_fd>> line_; ///< to be sent
  std::deque<unique_fd> strange_; ///< further sockets, with bytes that no correct client sends
  std::vector<uint64_t> former_;  ///< closed connections of this process
  std::vector<uint8_t> boot_;     ///< that numbered them
  uint64_t connection_ = 0;
  std::map<uint64_t, asked> open_;
  uint64_t last_request_ = 0;
  uint64_t answers_ = 0;
  uint64_t errors_ = 0;

  std::vector<uint32_t> spaces_;
  uint32_t region_ = 0;
  unique_fd device_memory_;  ///< the region is memory of the device
  uint32_t lost_region_ = 0; ///< its process has ended
  std::byte* memory_ = nullptr;
  std::vector<uint64_t> free_; ///< slots of the region
  std::deque<lease> leases_;
  std::vector<reading> readings_;
  std::map<uint32_t, mapping> segments_;
  std::vector<session> sessions_;
  uint64_t last_session_ = 0;
};

template <class Build>
void simulated_client::ask(protocol::kind verb, Build&& build, handler done, std::function<void()> lost,
                           int descriptor) {
  unique_fd attached(descriptor);
  if (!connected())
    return;
  uint64_t id = ++last_request_;
  auto bytes = test::frame_with(verb, id, std::forward<Build>(build), attached ? 1 : 0);
  open_[id] = {verb, world_.model.now(), std::move(done), std::move(lost), world_.events.now()};
  world_.events.note({7, number_, id, static_cast<uint64_t>(verb), bytes.size()});
  if (world_.trace)
    say("asks " + std::to_string(id) + ": " + std::string(protocol::to_string(verb)));
  line_.emplace_back(std::move(bytes), std::move(attached));
}

} // namespace terrace::simulation
