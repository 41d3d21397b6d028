// What all clients of a simulated daemon share: its sockets, their prompts, and the mix of what they do.
#pragma once

#include "daemon_model.hpp"
#include "simulated_calls.hpp"

#include "tests/support/raw_client.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace terrace::simulation {

class simulated_client;

/// What a client may do, in the order of `client_mix`.
enum class deed : uint8_t {
  store,
  load,
  lookup,
  lease,
  load_leased,
  read_leased,
  release,
  prefetch,
  cancel,
  reserve,
  session,
  pin,
  unpin,
  evict,
  move,
  clear_space,
  clear_all,
  await_lookup,
  save_prompt,
  explain,
  revoke,
  quota,
  set_policy,
  look_around, ///< status, policies, leases, check, quotas
  pause,       ///< for seconds
  disconnect,  ///< its process lives
  die,
  stop_reading,
  hostile,       ///< bytes that no correct client sends
  reload,        ///< SIGHUP
  cancel_lookup, ///< by its name, anybody's
  turn_twice,    ///< two turns of a session at once
};
constexpr size_t deeds = 32;
constexpr std::array<const char*, deeds> deed_names{
    "store",    "load",        "lookup",        "lease",        "load_leased", "read_leased", "release",
    "prefetch", "cancel",      "reserve",       "session",      "pin",         "unpin",       "evict",
    "move",     "clear_space", "clear_all",     "await_lookup", "save_prompt", "explain",     "revoke",
    "quota",    "set_policy",  "look_around",   "pause",        "disconnect",  "die",         "stop_reading",
    "hostile",  "reload",      "cancel_lookup", "turn_twice"};
using client_mix = std::array<uint32_t, deeds>; ///< weights

/// What all clients share.
struct client_world {
  scheduler& events;
  daemon_model& model;
  simulated_calls& calls;
  std::vector<std::string> sockets;       ///< by group
  std::vector<bool> isolated;             ///< by group
  std::optional<uint32_t> remote_group{}; ///< has a remote tier
  std::vector<uint32_t> pools{4096};      ///< bytes of an object
  uint32_t spaces = 1;                    ///< of a group
  std::vector<std::string> salts{1};      ///< by space
  uint32_t prompts = 4;                   ///< of a space
  uint32_t chunks = 4;                    ///< of a prompt
  uint32_t shared_chunks = 1;             ///< of four prompts
  std::chrono::nanoseconds thinks_most{1'000'000};
  std::optional<uint32_t> loud_group{}; ///< its clients think for a much shorter time
  uint32_t cut = 0;                     ///< of a million sends and receives of clients, that move only a part
  client_mix mix{};
  bool roomy = false;                        ///< nothing is evicted unless somebody asks
  std::chrono::nanoseconds answers_within{}; ///< requests, unless a client holds what they wait for
  std::map<uint32_t, std::vector<std::chrono::nanoseconds>> waits; ///< for such answers, by group
  bool healthy = false; ///< no operation of the disk fails or takes long
  bool sound = false;   ///< and no crash has cut off what was being written
  bool tails = false;   ///< some prompts end with a partial chunk
  bool names_lookups = false;
  std::map<uint32_t, uint64_t> named_lookups;                                         ///< so far, by group
  std::map<std::pair<uint32_t, uint64_t>, std::chrono::nanoseconds> answered_lookups; ///< by group and number
  std::set<std::pair<uint32_t, uint64_t>> awaited_lookups;   ///< whose leases may have further holders
  std::set<std::pair<uint32_t, uint64_t>> cancelled_lookups; ///< or about to be
  std::map<std::pair<uint32_t, uint64_t>, simulated_client*> leased_lookups; ///< and who has the lease
  std::vector<std::string> quotas;                                           ///< their names
  std::function<void()> reload;       ///< the configuration is changed and read again; may be null
  bool gpu = false;                   ///< clients may have memory of the device
  bool gpu_fails = false;             ///< and its processes fail
  std::set<named_object> saved_tails; ///< prompt entries refer to them
  struct pinned {
    size_t in_progress = 0; ///< pins and unpins
    uint64_t kept = 0;      ///< in the model
  };
  std::map<named_object, pinned> pins; ///< by the last object: prompts of several roots may be equal
  size_t hinderers = 0;                ///< what clients hold for as long as they like, and others wait for
  std::chrono::nanoseconds hindered_until{}; ///< the last of them ended
  bool down = false;                         ///< there is no daemon
  std::function<void(const std::string&)> trace;

  static constexpr std::array policies{"lru", "arc", "kmg", "s3fifo", "fifo"};
  static constexpr uint32_t chunk_tokens = 16;
  static constexpr uint32_t tail_tokens = 5; ///< of the partial chunk behind a prompt's last whole one
  static constexpr uint32_t logits_pool = 1000, logits_bytes = 96;

  /// Prompts of four roots begin alike, with `shared_chunks` chunks.
  struct prompt {
    uint32_t space = 0;
    uint32_t root = 0;
    uint32_t chunks = 0;
    bool tail = false; ///< a partial chunk follows
    std::string text() const {
      return "space " + std::to_string(space) + " root " + std::to_string(root) + " chunks " +
             std::to_string(chunks) + (tail ? " and a tail" : "");
    }
    uint32_t all() const { return chunks + (tail ? 1 : 0); }
    uint32_t tokens() const { return chunks * chunk_tokens + (tail ? tail_tokens : 0); }
  };
  /// From now on a client holds what others may wait for, until the returned token ends.
  std::shared_ptr<void> hinder();
  /// The daemon has ended, and what it had only in its memory.
  void forget_daemon() {
    pins.clear();
    answered_lookups.clear();
    awaited_lookups.clear();
    cancelled_lookups.clear();
    leased_lookups.clear();
  }
  /// Tokens from the chunk `first` on.
  std::vector<uint32_t> tokens_of(const prompt& of, uint32_t first) const;
  /// Objects from the chunk `first` on, chunk by chunk, pool by pool.
  std::vector<named_object> objects_of(uint32_t group, const prompt& of, uint32_t first = 0) const;
  flatbuffers::Offset<wire::Prefix> write_prefix(flatbuffers::FlatBufferBuilder& b, const prompt& of) const;
  static std::vector<uint8_t> lookup_id(uint64_t number);
  /// A socket of this process to the daemon's socket there, or none.
  unique_fd connect(const simulated_peer& as, const std::string& path) const;
  flatbuffers::Offset<wire::OpenSpace> open_space(flatbuffers::FlatBufferBuilder& b, uint32_t group,
                                                  uint32_t space) const;
};

} // namespace terrace::simulation
