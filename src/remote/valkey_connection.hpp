// One connection to a Valkey or Redis server, without its socket: commands become bytes to send, received bytes become
// results. Commands are pipelined: any number may be sent before the first reply.
//
//   valkey_connection server({.password = secret}); // logs in by itself; ready after the first replies
//   server.read(1, key, header, payload);
//   ... send server.outgoing()
//   ... receive into server.receive_area(), then server.received(bytes)
//   while (auto finished = server.next_finished()) ...
//
// A payload is sent from where it lies, and received where it shall lie: whoever asks keeps that memory until the
// command has finished, or the connection is closed and its last receive has ended.
//
// An error of `received` ends the connection: what has not finished will not. Pure, one thread.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "protocol/resp/reply.hpp"
#include "protocol/resp/reply_reader.hpp"
#include "remote/slot_map.hpp"
#include "remote/store_commands.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace::remote {

class valkey_connection : public store_commands {
 public:
  static constexpr size_t invalidated_max = 4096; ///< keys that are kept until somebody takes them

  /// `of_replica`: the server lets this connection read what its primary has (READONLY); it refuses all else.
  explicit valkey_connection(store_login login, bool of_replica = false);

  /// True once the server has let us in.
  bool ready() const override { return ready_; }

  // ---- commands: see store_commands ----

  size_t unfinished() const override { return expected_.size(); }
  void ping(uint64_t tag);
  using store_commands::exists;
  void exists(uint64_t tag, std::span<const std::string_view> keys) override;
  void read(uint64_t tag, std::string_view key, std::span<std::byte> header,
            std::span<std::byte> payload) override;
  void read_text(uint64_t tag, std::string_view key) override;
  void write(uint64_t tag, std::string_view key, std::span<const std::byte> header,
             std::span<const std::byte> payload, keep_alive owner, std::chrono::seconds lifetime) override;
  void write_text(uint64_t tag, std::string_view key, std::string_view text) override;
  void write_text_if_absent(uint64_t tag, std::string_view key, std::string_view text) override;
  void erase(uint64_t tag, std::string_view key) override;
  void length(uint64_t tag, std::string_view key) override;
  void scan(uint64_t tag, std::string_view cursor, std::string_view pattern, size_t count) override;
  void info(uint64_t tag, std::string_view section) override;
  void primary(uint64_t tag, std::string_view name) override;
  void slots(uint64_t tag) override;
  void asking() override;
  /// In the older protocol a server says OK and then tells nothing.
  void track(uint64_t tag) override;
  bool can_track() const override { return speaks_resp3_; }
  /// Empty for servers without HELLO.
  const std::string& server_name() const override { return server_name_; }
  const std::string& server_version() const override { return server_version_; }
  server_mode mode() const override { return mode_; }

  // ---- bytes ----

  resp::reply_queue& outgoing() { return outgoing_; }
  /// Where the next bytes are to be received, never empty.
  std::span<std::byte> receive_area();
  /// Tells that `bytes` were received there. Errors: the server violates the protocol (`bad_request`), or does not let
  /// us in: it refuses the credentials (`denied`), is not there yet (`busy`), or is another than we can use
  /// (`unsupported`). No error contains the password.
  result<void> received(size_t bytes);

  std::optional<finished_command> next_finished();

  // ---- what the server tells by itself ----

  invalidated_keys take_invalidated() override { return std::exchange(invalidated_, {}); }

 private:
  enum class command : uint8_t {
    hello,
    auth,
    select,
    read_only, ///< the last one of logging in
    ping,
    exists,
    read,
    read_text,
    write,
    write_if_absent,
    erase,
    length,
    scan,
    info,
    track,
    primary,
    slots,
    asking
  };
  struct expected_reply {
    uint64_t tag = 0;
    command what{};
    std::array<std::span<std::byte>, 2> places{}; ///< what is left of header and payload
    size_t payload_bytes = 0;                     ///< of `read`: of the value that is being received
    int64_t keys = 1;                             ///< of `exists`
    /// True if there is a place for such a value.
    bool takes(size_t value_bytes) const {
      return value_bytes >= places[0].size() && value_bytes - places[0].size() <= places[1].size();
    }
  };

  std::string& begin(uint64_t tag, command what);
  void add(uint64_t tag, command what, std::initializer_list<std::string_view> words);
  void greet();
  void authenticate();
  void select_database();
  void let_in();
  error rejection(std::string_view said) const;

  result<void> parse();
  result<void> take(const resp::reply_step& step);
  result<void> take_reply(const resp::reply_step& step);
  result<void> take_item(const resp::reply_step& step);
  result<void> take_greeting(const resp::reply_step& step);
  void take_server(const resp::reply_step& step);
  result<void> take_scanned(const resp::reply_step& step);
  result<void> take_primary(const resp::reply_step& step);
  result<void> take_slots(const resp::reply_step& step);
  void name_node(slot_range& range);
  void take_pushed(const resp::reply_step& step);
  void take_value();
  void expect_value(size_t bytes);
  void place(std::string_view bytes);
  std::span<std::byte> next_place();
  void finish(command_result result, error why = {}, std::string text = {}, int64_t number = 0);

  store_login login_;
  bool of_replica_ = false;
  bool ready_ = false;
  bool speaks_resp3_ = false;
  server_mode mode_ = server_mode::unknown;
  std::string server_name_, server_version_;
  std::string greeted_with_; ///< the last word of the reply to HELLO
  finished_command scanned_; ///< so far
  struct {
    size_t of_range = 0, of_node = 0; ///< items so far
    std::string host, property;
    uint64_t port = 0;
    bool named = false; ///< the replica that is being read is the last one of the range
  } slots_;             ///< the range that is being read
  resp::reply_queue outgoing_;
  resp::reply_reader reader_;
  std::deque<expected_reply> expected_;
  bool has_place_ =
      false;            ///< the value that is being received goes to the places of the first expected reply
  bool pushed_ = false; ///< the reply that is being read is a message that the server sends by itself
  size_t pushed_items_ = 0;
  bool invalidates_ = false; ///< that message names changed keys
  std::deque<finished_command> finished_;
  invalidated_keys invalidated_;
};

/// What a server's error means. The text says what to do.
error error_of_server(std::string_view said);

} // namespace terrace::remote
