// A stream of copies to or from a device: requests in order, parts bounded in flight, cancels, completions through a descriptor.
#pragma once

#include "gpu/device.hpp"

#include <deque>
#include <vector>

namespace terrace::gpu {

/// The end of a request. `parts_done` parts, from the first on, have arrived whole; all of them when there is no failure.
struct completion {
  uint64_t id = 0;
  size_t parts_done = 0;
  std::optional<error> failure;
};

struct copy_stream_options {
  uint64_t bytes_in_flight_max = 64 << 20; ///< a larger part goes alone
  size_t parts_in_flight_max = 32;
  size_t requests_max = 4096; ///< more are `busy`
};

/// Owned by one actor or thread, which calls all of it; nothing blocks but the destructor.
///
/// Requests are done in the order of their submission, parts in theirs. Streams know nothing of each other: what must follow
/// across them awaits a generation. Parts are given to the device as earlier ones end, so what is cancelled early is never copied. A
/// request that awaits a generation which is not there yet is given nothing until it is, and those behind it wait with it.
class copy_stream {
 public:
  /// `way` is for all requests of the stream: loads and stores have one each, since a device copies in both directions at once.
  static result<std::unique_ptr<copy_stream>> open(std::shared_ptr<device> device, direction way,
                                                   copy_stream_options options = {});
  /// Cancels what is left, and blocks until nothing touches memory, except on a lost device.
  ~copy_stream();
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;

  /// Errors: `bad_request` (what `check` of copy_request.hpp finds, an id in use), `busy`, `gone`. Otherwise there will be one
  /// completion, also for what fails.
  result<void> submit(copy_request request);

  /// Ends a request as soon as the device has left it: what is not given to the device is not copied, an unfulfilled wait ends. Its
  /// completion says how far it came; `cancelled`, unless all was done. False when there is no such request.
  bool cancel(uint64_t id);

  /// Readable when `drain` has something to do. Watch it in an event loop.
  int descriptor() const { return completions_->descriptor(); }
  /// Gives the device more to do, and returns what has ended, in the order of its end.
  std::vector<completion> drain();

  /// For a deadline that has passed: asks the device whether it lives. When it does not, all requests end as `gone` with the next
  /// drain, and the memory of what was in flight is kept as long as the stream.
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
    size_t issued = 0; ///< parts given to the device
    size_t done = 0;
    size_t in_flight = 0; ///< steps, the wait among them
    bool waiting = false; ///< for the generation
    bool awaited = false; ///< the generation has come
    std::optional<error> failure;
  };
  /// A step that the device has.
  struct step {
    uint64_t ticket = 0;
    uint64_t serial = 0;
    std::optional<size_t> part; ///< none: the wait
    uint64_t bytes = 0;
    bool failed = false; ///< at its start
  };

  copy_stream(std::shared_ptr<device> device, direction way, copy_stream_options options,
              std::shared_ptr<completion_queue> completions, std::unique_ptr<copy_engine> engine);
  entry* find(uint64_t serial);
  void issue_more();
  bool issue(entry& owner, std::optional<size_t> part);
  void finish(over_part over);
  void collect(std::vector<completion>& ended);
  void lose(const error& reason);

  const std::shared_ptr<device> device_;
  const direction way_;
  const copy_stream_options options_;
  const std::shared_ptr<completion_queue> completions_;
  std::deque<entry> queue_; ///< by serial
  std::deque<step> flight_; ///< in the order of issue, which is that of their end
  uint64_t bytes_in_flight_ = 0;
  uint64_t next_serial_ = 1;
  uint64_t next_ticket_ = 1;
  std::optional<error> lost_;
  std::vector<copy_request> quarantine_; ///< what a lost device may still touch
  std::unique_ptr<copy_engine> engine_;  ///< ends first
};

} // namespace terrace::gpu
