// The state that survives a reconnect: how to reach the daemon, and what to open again.
#pragma once

#include "client/channel.hpp"
#include "client/client.hpp"
#include "client/conversions.hpp"
#include "protocol/verify.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

namespace terrace::client::detail {

/// Passes the error of one result on as another result type.
template <class T>
tl::unexpected<error> pass_on(const result<T>& failed) {
  return tl::unexpected<error>(failed.error());
}

class core {
 public:
  explicit core(connect_options options) : options_(std::move(options)) {}

  /// Performs the handshake on the socket, opens the spaces, registers the regions, and makes the channel the
  /// current one.
  result<void> start(unique_fd socket, deadline until);

  result<bool> reconnect(deadline until);

  const std::shared_ptr<channel>& now() const { return channel_; }
  const daemon_info& info() const { return info_; }
  const connect_options& options() const { return options_; }

  result<space> open_space(const space_spec& spec, deadline until);
  result<space> open_space(uint32_t number, deadline until);
  result<void> close_space(const space& opened, deadline until);
  result<uint32_t> space_id_of(const space& opened) const;
  std::span<const open_pool> pools_of(const space& opened) const;
  uint32_t chunk_tokens_of(const space& opened) const { ///< Returns 1 if there is no such space.
    return opened.slot < spaces_.size() ? spaces_[opened.slot].spec.chunk_tokens : 1;
  }

  /// Returns the slot; `region_at` has the details.
  result<uint32_t> register_region(unique_fd memory, uint64_t bytes, deadline until);
  result<uint32_t> register_device_region(unique_fd memory, const device_allocation& what, deadline until);
  result<uint32_t> register_generations(unique_fd memory, uint64_t bytes, const std::string& device,
                                        uint32_t events, deadline until);
  void unregister_region(uint32_t slot);
  /// Unregisters the region in this slot and waits for the answer.
  result<void> end_region(uint32_t slot, deadline until);

  /// The bell. The daemon makes it at the first call.
  result<bell> ring_with(deadline until);

  struct region_entry {
    unique_fd memory; ///< empty: the slot is free
    wire::RegionKind kind = wire::RegionKind::memfd;
    std::string device{};             ///< not used for memfds
    std::array<uint8_t, 64> handle{}; ///< handle for cuda_ipc
    uint64_t bytes = 0;
    uint32_t events = 0; ///< number of events, for generations
    uint32_t id = 0;     ///< id in the current channel
    bool mapped = false;
  };
  const region_entry& region_at(uint32_t slot) const { return regions_[slot]; }

 private:
  result<uint32_t> add_region(region_entry entry, deadline until);
  struct space_entry {
    space_spec spec;
    uint32_t id = 0;    ///< id in the current channel; 0: closed, and the slot is free
    digest fingerprint; ///< fingerprint when it was first opened
    std::vector<open_pool> pools;
    uint32_t known = 0; ///< opened by this number instead of the spec
  };
  /// A channel that closed while its daemon kept running. Its memory there is quarantined until the client
  /// confirms.
  struct ended_channel {
    std::shared_ptr<channel> past;
    uint64_t connection;
  };

  static result<daemon_info> shake_hands(channel& with, const hello_request& hello, deadline until);
  static result<void> open(channel& at, space_entry& entry, deadline until);
  result<space> enter(space_entry entry, deadline until);
  static result<void> announce(channel& at, region_entry& entry, deadline until);
  static result<unique_fd> bell_of(channel& at, deadline until);
  void back_off();

  connect_options options_;
  std::shared_ptr<channel> channel_; ///< between a loss and a reconnect this is a closed channel
  bool started_ = false;             ///< channel_ has completed the handshake, and is not in ended_
  daemon_info info_;
  std::vector<space_entry> spaces_;
  std::vector<region_entry> regions_;
  std::optional<bell> bell_;         ///< none: nobody has asked for the bell
  std::vector<ended_channel> ended_; ///< ended channels of the boot in `info_`
  std::chrono::steady_clock::time_point next_attempt_{};
  uint32_t failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

/// The result type of a call whose `read` returns T: result<T>, or T itself if it is already a result.
template <class T>
struct as_result {
  using type = result<T>;
};
template <class T>
struct as_result<result<T>> {
  using type = result<T>;
};
template <class T, class Read>
using read_result = typename as_result<std::invoke_result_t<Read&, const T&, answer&>>::type;

/// Reads an answer of type T with `read(const T&, answer&)`. An error frame becomes its error; a malformed
/// one closes the channel.
template <class T, class Read>
read_result<T, Read> read_answer(channel& from, answer& got, Read&& read) {
  if (got.kind == protocol::kind::error) {
    auto table = protocol::parse<wire::Error>(got.body);
    if (table)
      return tl::unexpected<error>(error{static_cast<errc>((*table)->code()), (*table)->text()->str()});
    from.lose("the daemon broke the protocol: " + table.error().text);
    return fail(errc::gone, table.error().text);
  }
  auto table = protocol::parse<T>(got.body);
  if (!table) {
    from.lose("the daemon broke the protocol: " + table.error().text);
    return fail(errc::gone, table.error().text);
  }
  if constexpr (std::is_void_v<std::invoke_result_t<Read&, const T&, answer&>>) {
    read(**table, got);
    return {};
  } else {
    return read(**table, got);
  }
}

/// Waits for the answer, then reads it as above. A request that timed out is dropped.
template <class T, class Read>
read_result<T, Read> take(channel& from, uint64_t id, deadline until, Read&& read) {
  auto got = from.wait(id, until);
  if (got)
    return read_answer<T>(from, *got, std::forward<Read>(read));
  if (got.error().code == errc::deadline)
    from.forget(id);
  return tl::unexpected<error>(got.error());
}

/// Sends a request and waits for its answer: `build(body_builder&)` builds the request's table, `read`
/// converts the answer's table. If it needs the answer's descriptors, it takes them as `read(table,
/// answer&)`.
template <protocol::kind Verb, class Build, class Read>
auto ask(channel& with, deadline until, Build&& build, Read&& read, std::span<const int> descriptors = {}) {
  using request_table = protocol::request_table<Verb>;
  using answer_table = protocol::answer_table<Verb>;
  auto adapted = [&](const answer_table& table, [[maybe_unused]] answer& got) {
    if constexpr (std::is_invocable_v<Read&, const answer_table&>)
      return read(table);
    else
      return read(table, got);
  };
  auto id = with.submit(
      Verb, [&](body_builder& body) -> flatbuffers::Offset<request_table> { return build(body); }, until,
      descriptors);
  if (!id)
    return read_result<answer_table, decltype(adapted)>(tl::unexpected<error>(id.error()));
  return take<answer_table>(with, *id, until, adapted);
}

/// Waits for the answer. A request that timed out is given up, because nobody has its ticket.
template <class T>
result<T> finish(result<ticket<T>> submitted, deadline until) {
  if (!submitted)
    return pass_on(submitted);
  auto done = submitted->wait(until);
  if (!done)
    submitted->give_up();
  return done;
}

} // namespace terrace::client::detail
