// The arenas that the process of a device reads: which parts it has pinned, what it does next, and who uses them.
//
//   arenas.add(segment);                    // at any time
//   arenas.serve();                         // there is a process
//   while (auto step = arenas.next(id))     // to the process; then wait for its answer:
//     arenas.done(failure);
//
// The process does one step at a time: pinning a piece takes it and the driver tens of milliseconds, and copies come in
// between. Memory that is not pinned yet, or cannot be pinned, passes through staging memory.
//
// Pure; one thread.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "memory/arena.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace terrace::gpu {

class pinned_arenas {
 public:
  /// `piece_bytes` are pinned by one step; a multiple of 2 MiB.
  explicit pinned_arenas(uint64_t piece_bytes = 64 << 20) : piece_bytes_(piece_bytes) {}

  /// The region and offset of a byte in the process.
  struct place {
    uint64_t region = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;                 ///< bytes from there to the end of the region
    const std::byte* segment = nullptr; ///< to pass to `use`
  };
  struct step {
    enum class kind : uint8_t { map, pin, forget };
    kind what = kind::map;
    uint64_t region = 0; ///< the region that the step makes or forgets
    uint64_t mapped = 0; ///< pin: the region of the segment
    uint64_t offset = 0; ///< pin: offset in the segment
    uint64_t bytes = 0;
    std::shared_ptr<const arena> segment; ///< map: the segment
  };

  void add(std::shared_ptr<const arena> segment);
  /// From now on `find` does not find the segment. `then` is called when no copy uses it and the process has
  /// forgotten it or has ended; at once if the segment is not known.
  void remove(const std::byte* begin, std::function<void()> then);

  /// Returns nullopt if the byte is not pinned.
  std::optional<place> find(const std::byte* at) const;
  bool empty() const { return pinned_bytes_ == 0; } ///< `find` would find nothing
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  /// A copy reads the segment. The `owners` of what it reads are kept until `end_use`. If the process is lost
  /// meanwhile, they are kept until it has ended, because it may read until then. Returns a number for `end_use`.
  uint64_t use(const std::byte* segment, std::vector<keep_alive> owners);
  void end_use(uint64_t number);

  void serve();
  /// The process is lost: `find` finds nothing from now on. The process may read until `ended`.
  void lose();
  void ended();

  /// Returns the next step; if it makes a region, that has the number `id`. Nullopt: a step is in progress,
  /// or all is done.
  std::optional<step> next(uint64_t id);
  /// The step is over. After a failure this process pins no more; what it has pinned stays.
  void done(const error& failure);

 private:
  struct segment {
    std::shared_ptr<const arena> memory;
    uint64_t mapped = 0;          ///< its region; 0: none
    std::vector<uint64_t> pieces; ///< the regions of its pieces, in order
    size_t users = 0;
    std::function<void()> leaving; ///< set while it is being removed
  };
  using segments = std::map<const std::byte*, segment>;
  struct user {
    const std::byte* segment = nullptr;
    std::vector<keep_alive> owners;
  };

  bool is_over(const segment& each) const {
    return each.leaving && each.users == 0 && each.mapped == 0 && each.pieces.empty();
  }
  std::optional<step> step_of(segment& each, uint64_t id);
  void finish_removals();

  const uint64_t piece_bytes_;
  segments segments_;
  std::map<uint64_t, user> users_;
  uint64_t next_user_ = 1;
  std::vector<keep_alive> quarantine_; ///< owners of memory that a lost process may read
  uint64_t pinned_bytes_ = 0;
  bool serves_ = false;
  bool refused_ = false;
  std::optional<step> under_way_;
  const std::byte* stepping_ = nullptr; ///< the segment of the step in progress
};

} // namespace terrace::gpu
