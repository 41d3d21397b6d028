// A stream of copies to or from a device: ordered requests, a bounded number of parts in flight,
// cancellation, completions through a descriptor.
#pragma once

#include "gpu/device.hpp"

#include <deque>
#include <vector>

namespace terrace::gpu {

/// The end of a request. The first `parts_done` parts have arrived completely; without a failure, all parts.
struct completion {
  uint64_t id = 0;
  size_t parts_done = 0;
  std::optional<error> failure;
};

struct copy_stream_options {
  uint64_t bytes_in_flight_max = 64 << 20; ///< a larger part is issued alone
  size_t parts_in_flight_max = 32;
  size_t requests_max = 4096; ///< further requests are `busy`
};

/// Owned by one actor or thread, which makes all calls; only the destructor blocks.
///
/// Requests are executed in the order of submission, and their parts in order. Streams are independent; an
/// order between them requires waiting for a generation. Parts are issued to the device as earlier ones end,
/// so requests that are cancelled early are never copied. If a request waits for a generation not yet
/// reached, none of its parts are issued, and the requests behind it wait too.
class copy_stream {
 public:
  /// `way` is the direction of all requests of the stream: loads and stores have separate streams, because a
  /// device copies in both directions concurrently.
  static result<std::unique_ptr<copy_stream>> open(std::shared_ptr<device> device, direction way,
                                                   copy_stream_options options = {});
  /// Cancels the remaining requests, and blocks until no memory is accessed any more, except on a lost
  /// device.
  ~copy_stream();
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;

  /// Errors: `bad_request` (see `check` in copy_request.hpp, or an id in use), `busy`, `gone`. If there is no
  /// error, exactly one completion follows, even if the request fails.
  result<void> submit(copy_request request);

  /// Ends a request as soon as the device no longer works on it: parts not yet issued are not copied, and a
  /// pending wait ends. Its completion says how many parts were done, with `cancelled` unless all were.
  /// Returns false if there is no such request.
  bool cancel(uint64_t id);

  /// Readable when `drain` has something to do; for an event loop.
  int descriptor() const { return completions_->descriptor(); }
  /// Issues more parts to the device, and returns the requests that have ended, in that order.
  std::vector<completion> drain();

  /// Call after a deadline has passed: asks whether the device is lost. If so, all requests end with `gone`
  /// at the next drain, and the stream keeps the memory in flight as long as it exists.
  result<void> check();

  size_t requests() const { return queue_.size(); }
  uint64_t bytes_in_flight() const { return bytes_in_flight_; }
  size_t parts_in_flight() const { return flight_.size(); }

 private:
  struct entry {
    copy_request request;
    uint64_t id = 0;
    uint64_t serial = 0;
    size_t parts = 0;
    size_t issued = 0; ///< parts issued to the device
    size_t done = 0;
    size_t in_flight = 0; ///< steps, including the wait
    bool waiting = false; ///< waits for the generation
    bool awaited = false; ///< the generation has been reached
    std::optional<error> failure;
  };
  /// A step issued to the device.
  struct step {
    uint64_t ticket = 0;
    uint64_t serial = 0;
    std::optional<size_t> part; ///< none: the step is the wait
    uint64_t bytes = 0;
    bool failed = false; ///< it failed when it was issued
  };

  copy_stream(std::shared_ptr<device> device, direction way, copy_stream_options options,
              std::shared_ptr<completion_queue> completions, std::unique_ptr<copy_engine> engine);
  entry* find(uint64_t serial);
  void issue_more();
  void issue_all();
  bool issue(entry& owner, std::optional<size_t> part);
  void finish(over_part over);
  void collect(std::vector<completion>& ended);
  void lose(const error& reason);

  const std::shared_ptr<device> device_;
  const direction way_;
  const copy_stream_options options_;
  const std::shared_ptr<completion_queue> completions_;
  std::deque<entry> queue_; ///< ordered by serial
  std::deque<step> flight_; ///< in the order of issue, in which they also end
  uint64_t bytes_in_flight_ = 0;
  uint64_t next_serial_ = 1;
  uint64_t next_ticket_ = 1;
  std::optional<error> lost_;
  std::vector<copy_request> quarantine_; ///< memory that a lost device may still access
  std::unique_ptr<copy_engine> engine_;  ///< destroyed first
};

} // namespace terrace::gpu
