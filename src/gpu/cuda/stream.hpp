// The driver's streams and events.
#pragma once

#include "gpu/cuda/context.hpp"

namespace terrace::cuda {

struct stream_kind {
  using type = stream_handle;
  static status release(const functions& api, type handle) { return api.StreamDestroy(handle); }
};

struct event_kind {
  using type = event_handle;
  static status release(const functions& api, type handle) { return api.EventDestroy(handle); }
};

/// A stream that does not synchronize with the default stream. Its destructor does not wait: started work
/// continues, and must own the memory that it accesses.
class stream : public owned<stream_kind> {
 public:
  stream() = default;
  static result<stream> make(std::shared_ptr<const context> context);

  /// Blocks until all started work is done. Errors: the sticky error that ended it.
  result<void> synchronize() const;
  /// True if all work is done. Errors: the context is lost.
  result<bool> idle() const;

 private:
  using owned::owned;
};

/// An event without timing. A process that waits for a record of another process must know by other means
/// that it was made: waiting for an event that was not recorded yet returns immediately (docs/gpu.md).
class event : public owned<event_kind> {
 public:
  event() = default;
  static result<event> make(std::shared_ptr<const context> context);
  /// Makes an event that other processes can open; it must outlive their imports.
  static result<event> make_shared(std::shared_ptr<const context> context);
  /// Opens an event of another process by its handle.
  static result<event> open(std::shared_ptr<const context> context, const ipc_event_handle& handle);

  result<ipc_event_handle> share() const;
  result<void> record(const stream& stream) const;
  /// Later work on `stream` waits for all work that was recorded before this call.
  result<void> block(const stream& stream) const;
  /// True if the last record is done, or there was none.
  result<bool> done() const;

 private:
  using owned::owned;
  static result<event> make(std::shared_ptr<const context> context, unsigned flags);
};

} // namespace terrace::cuda
