// What survives a reconnect: how to reach the daemon, and what to open there again.
#pragma once

#include "client/channel.hpp"
#include "client/client.hpp"
#include "client/encode.hpp"
#include "protocol/verify.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <vector>

namespace terrace::client::detail {

class core {
 public:
  explicit core(connect_options options) : options_(std::move(options)) {}

  /// Shakes hands on the socket, opens the spaces and registers the regions, and makes the channel the current one.
  result<void> start(unique_fd socket, deadline until);

  result<bool> reconnect(deadline until);

  const std::shared_ptr<channel>& now() const { return channel_; }
  const daemon_info& info() const { return info_; }
  const connect_options& options() const { return options_; }

  result<space> open_space(const space_spec& spec, deadline until);
  result<uint32_t> space_id_of(const space& opened) const;
  std::span<const open_pool> pools_of(const space& opened) const;

  /// Gives the slot; `region_at` knows the rest.
  result<uint32_t> register_region(unique_fd memory, uint64_t bytes, deadline until);
  void unregister_region(uint32_t slot);

  struct region_entry {
    unique_fd memory; ///< empty: the slot is free
    uint64_t bytes = 0;
    uint32_t id = 0; ///< in the current channel
    bool mapped = false;
  };
  const region_entry& region_at(uint32_t slot) const { return regions_[slot]; }

 private:
  struct space_entry {
    space_spec spec;
    uint32_t id = 0; ///< in the current channel
    digest fingerprint;
    std::vector<open_pool> pools;
  };
  /// A channel that ended while its daemon lived on. Its memory there is quarantined until we say we are done.
  struct ended_channel {
    std::shared_ptr<channel> past;
    uint64_t connection;
  };

  static result<daemon_info> shake_hands(channel& with, const hello_request& hello, deadline until);
  static result<void> open(channel& at, space_entry& entry, deadline until);
  static result<void> announce(channel& at, region_entry& entry, deadline until);
  void back_off();

  connect_options options_;
  std::shared_ptr<channel> channel_; ///< between a loss and a reconnect: one that has ended
  bool started_ = false;             ///< channel_ has shaken hands, and was not put among the ended ones
  daemon_info info_;
  std::vector<space_entry> spaces_;
  std::vector<region_entry> regions_;
  std::vector<ended_channel> ended_; ///< all of info_.boot
  std::chrono::steady_clock::time_point next_attempt_{};
  uint32_t failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

/// Reads an answer of the type T with `read(const T&, answer&)`. An error frame becomes its error; anything malformed
/// ends the channel.
template <class T, class Read>
auto read_answer(channel& from, answer& got, Read&& read)
    -> result<decltype(read(std::declval<const T&>(), got))> {
  if (got.kind == protocol::kind::error) {
    auto table = protocol::parse<wire::Error>(got.body);
    if (table)
      return tl::unexpected<error>(error{static_cast<errc>((*table)->code()), (*table)->text()->str()});
    from.end("the daemon broke the protocol: " + table.error().text);
    return fail(errc::gone, table.error().text);
  }
  auto table = protocol::parse<T>(got.body);
  if (table)
    return read(**table, got);
  from.end("the daemon broke the protocol: " + table.error().text);
  return fail(errc::gone, table.error().text);
}

/// Waits for it first. A request that ran out of time is forgotten.
template <class T, class Read>
auto take(channel& from, uint64_t id, deadline until, Read&& read)
    -> result<decltype(read(std::declval<const T&>(), std::declval<answer&>()))> {
  auto got = from.wait(id, until);
  if (got)
    return read_answer<T>(from, *got, std::forward<Read>(read));
  if (got.error().code == errc::deadline)
    from.forget(id);
  return tl::unexpected<error>(got.error());
}

} // namespace terrace::client::detail
