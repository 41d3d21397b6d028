// What is asked of a remote store, whatever it speaks, and what comes back: the seam between the actor that uses a store and the
// client of one kind of it (valkey_connection.hpp, actors/remote/s3_link.cpp, actors/remote/plugin_link.cpp).
//
// Any number of commands may be asked before the first has finished. A payload is sent from where it lies, and received where it
// shall lie. Commands with tag 0 finish in their order; where a store answers several at a time, others finish when they are done.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "remote/slot_map.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::remote {

struct store_login {
  std::string user;     ///< empty: the server's default user. S3: the access key
  std::string password; ///< empty: none is needed. S3: the secret key
  uint32_t database = 0;

  friend bool operator==(const store_login&, const store_login&) = default;
};

enum class command_result : uint8_t {
  done,
  absent,       ///< no such key; for `write_if_absent`: there was one
  wrong_length, ///< the value is longer than the memory for it, or shorter than the header; its bytes were skipped
  refused,      ///< by the server: `why`
};

struct finished_command {
  uint64_t tag = 0;
  command_result result{};
  error
      why{}; ///< `denied`: credentials or rights; `busy`, `no_space`: later; `unsupported`: another server is needed
  std::string text;   ///< of `read_text`, `info` and `primary`; of `scan`: the next cursor, "0" at the end
  int64_t number = 0; ///< of `length`: bytes; of `read`: bytes behind the header
  std::vector<std::string> keys{};         ///< of `scan`
  std::vector<slot_range> slots{};         ///< of `slots`
  std::optional<redirection> redirected{}; ///< `refused`, because another node of the cluster has the key
  bool cluster_down =
      false; ///< `refused`, because nobody has the key's slot, or the node has lost the others
};

/// How a Valkey or Redis server says that it runs.
enum class server_mode : uint8_t { unknown, standalone, cluster, sentinel };

/// What a store tells by itself.
struct invalidated_keys {
  bool all = false; ///< any key may have changed
  std::vector<std::string> keys;
};

class store_commands {
 public:
  static constexpr size_t commands_max = 1024;      ///< that have not finished
  static constexpr size_t text_bytes_max = 4 << 10; ///< of `read_text`

  virtual ~store_commands() = default;

  /// True once the store has let us in.
  virtual bool ready() const = 0;

  // ---- commands; `tag` comes back with the result. Precondition: ready, and has_room() ----

  virtual size_t unfinished() const = 0;
  bool has_room(size_t commands = 1) const { return unfinished() + commands <= commands_max; }
  bool waits() const { return unfinished() != 0; }

  void exists(uint64_t tag, std::string_view key) { exists(tag, {&key, 1}); }
  /// The parts of an object: `done` if all of them exist, `absent` if one does not.
  virtual void exists(uint64_t tag, std::span<const std::string_view> keys) = 0;
  /// The value has all of the header, and at most as much behind it as the payload; what the memory for the payload has beyond is not
  /// touched. Both stay until the command has finished or the connection has ended.
  virtual void read(uint64_t tag, std::string_view key, std::span<std::byte> header,
                    std::span<std::byte> payload) = 0;
  virtual void read_text(uint64_t tag, std::string_view key) = 0;
  /// `owner` keeps the payload until it is sent. The store forgets the value after `lifetime`, if it can; 0: never.
  virtual void write(uint64_t tag, std::string_view key, std::span<const std::byte> header,
                     std::span<const std::byte> payload, keep_alive owner, std::chrono::seconds lifetime) = 0;
  virtual void write_text(uint64_t tag, std::string_view key, std::string_view text) = 0;
  virtual void write_text_if_absent(uint64_t tag, std::string_view key, std::string_view text) = 0;
  virtual void erase(uint64_t tag, std::string_view key) = 0;
  /// The bytes of a value: 0 if there is none.
  virtual void length(uint64_t tag, std::string_view key) = 0;
  /// Some keys that match the pattern; `count`: how many the server looks at, about. The first cursor is "0". Keys of more than
  /// 4 KiB are left out.
  virtual void scan(uint64_t tag, std::string_view cursor, std::string_view pattern, size_t count) = 0;
  /// A section of what the server tells of itself.
  virtual void info(uint64_t tag, std::string_view section) = 0;

  /// What the server calls itself, such as "redis", and its version; empty: it does not say.
  virtual const std::string& server_name() const = 0;
  virtual const std::string& server_version() const = 0;

  // ---- of stores that tell of changes ----

  virtual bool can_track() const { return false; }
  /// From now on the server tells which of the keys that this connection asks for have changed. Precondition: can_track().
  virtual void track(uint64_t) {}
  /// Returns what has changed since the last call.
  virtual invalidated_keys take_invalidated() { return {}; }

  // ---- of clusters, and of sentinels ----

  /// `unknown`: it does not say, or its kind has no modes.
  virtual server_mode mode() const { return server_mode::unknown; }
  /// The next command is for a slot that is on its way to this node. It has no result of its own, and takes the room of a command.
  virtual void asking() {}
  /// Asks a node who has which slots.
  virtual void slots(uint64_t) {}
  /// Asks a sentinel where the primary of this name is: `text` becomes "10.0.0.7:6379" or "[fd00::7]:6379"; `absent` if the
  /// sentinel watches none of this name.
  virtual void primary(uint64_t, std::string_view) {}
};

} // namespace terrace::remote
