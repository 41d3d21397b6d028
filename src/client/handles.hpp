// Resources of a connection: each handle releases its resource on destruction, without waiting.
//
// Handles are move-only and used on the thread of their connection. They may outlive the connection object; a
// handle of a closed connection releases nothing, because the daemon has already done so.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace terrace::client {

class async_requests;
class connection;
struct lookup_result;
template <class T>
class ticket;

namespace detail {
class channel; // one incarnation of a connection
class core;    // what survives a reconnect
} // namespace detail

/// The right to read found objects: they stay in place during its lifetime.
class lease {
 public:
  lease() = default;
  lease(lease&& other) noexcept : channel_(std::move(other.channel_)), id_(std::exchange(other.id_, {})) {}
  lease& operator=(lease&& other) noexcept {
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~lease() { release(); }

  explicit operator bool() const { return !id_.empty(); }

  /// May be passed to other connections of the trust group, in other processes (connection::adopt).
  const lease_id& id() const { return id_; }

  /// Releases the lease now. Spans read under it must not be accessed any more.
  void release();

 private:
  friend class connection;
  friend class ticket<lookup_result>;
  lease(std::shared_ptr<detail::channel> channel, lease_id id) : channel_(std::move(channel)), id_(id) {}
  std::shared_ptr<detail::channel> channel_;
  lease_id id_;
};

/// Objects in place, in mapped memory of the daemon: read-only, valid while the lease is held. Any thread may
/// read.
struct located_objects {
  std::vector<std::span<const uint8_t>> objects; ///< by chunk, then by pool
  std::shared_ptr<const void> mappings;          ///< keeps the memory mapped, not leased
  uint64_t first_token = 0;              ///< position in the prompt at which the first of their chunks begins
  std::optional<missing_object> missing; ///< the object that ended them early; none if no more objects fit
};

/// Staging memory for chunks that the client writes itself. It ends with commit or abort; destruction aborts.
class reservation {
 public:
  reservation() = default;
  reservation(reservation&& other) noexcept
      : channel_(std::move(other.channel_)), id_(std::exchange(other.id_, 0)),
        objects_(std::move(other.objects_)) {}
  reservation& operator=(reservation&& other) noexcept {
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
    std::swap(objects_, other.objects_);
    return *this;
  }
  ~reservation() { abort(); }

  explicit operator bool() const { return id_ != 0; }

  /// The destination of each object's bytes, by chunk, then by pool. Empty for an object that is already
  /// present.
  std::span<const std::span<uint8_t>> objects() const { return objects_; }

  /// Releases the memory without publishing. The spans must not be accessed any more.
  void abort();

 private:
  friend class async_requests;
  friend class ticket<reservation>;
  std::shared_ptr<detail::channel> channel_;
  uint64_t id_ = 0;
  std::vector<std::span<uint8_t>> objects_;
};

/// A region registered with the daemon. Survives reconnects (it is registered again); unregistered on
/// destruction.
class registered_region {
 public:
  registered_region() = default;
  registered_region(registered_region&& other) noexcept
      : core_(std::move(other.core_)), slot_(other.slot_), bytes_(other.bytes_), mapped_(other.mapped_) {}
  registered_region& operator=(registered_region&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(slot_, other.slot_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~registered_region() { drop(); }

  explicit operator bool() const { return core_ != nullptr; }
  uint64_t bytes() const { return bytes_; }

  /// Sealed, so that the daemon maps it; otherwise it is accessed through the descriptor, which is slower.
  bool mapped() const { return mapped_; }

  /// Waits until neither the daemon nor a device acting for it accesses the memory: then it may be freed. The handle is
  /// empty afterwards.
  result<void> unregister(deadline until = {});

 private:
  friend class async_requests;
  friend class connection;
  friend class layer_events;
  void drop(); ///< without waiting
  /// Channel on which it was last registered; null: it is not registered.
  std::shared_ptr<detail::channel> channel() const;
  std::shared_ptr<detail::core> core_;
  uint32_t slot_ = 0;
  uint64_t bytes_ = 0;
  bool mapped_ = false;
};

namespace detail {

/// The part of a ticket that does not depend on its result type.
class any_ticket {
 public:
  any_ticket() = default;
  any_ticket(any_ticket&& other) noexcept
      : channel_(std::move(other.channel_)), id_(std::exchange(other.id_, 0)) {}
  any_ticket& operator=(any_ticket&& other) noexcept {
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~any_ticket();

  /// A result or an error is available without waiting.
  bool ready() const;
  explicit operator bool() const { return id_ != 0; }

  /// Asks the daemon to end the request, which is still answered: with `cancelled`, or with its result. Returns
  /// false if the daemon no longer knows the request.
  result<bool> cancel(deadline until = {}) const;

  /// Asks the daemon to cancel the request, without waiting, and abandons it. When its answer arrives, it is
  /// dropped and its resources are released.
  void give_up();

 protected:
  /// Waits for the answer, a `Table`, and reads it.
  template <class Table, class Read>
  auto take(deadline until, Read&& read) -> result<decltype(read(std::declval<const Table&>()))>;

  friend class client::async_requests;
  std::shared_ptr<channel> channel_;
  uint64_t id_ = 0;
};

} // namespace detail

/// A request in progress. Destroying it does not cancel the request:
/// its answer, and what it would hold, is dropped when it arrives.
template <class T>
class ticket : public detail::any_ticket {
 public:
  using result_type = T;

  /// Takes the result and empties the ticket. If it fails with `errc::deadline` because of its own `until`,
  /// the ticket remains valid and can be waited for again.
  result<T> wait(deadline until = {});
};

} // namespace terrace::client
