// The arenas that the process of a device reads: what it has pinned of them, what it is to do next, and who uses them.
//
//   arenas.add(segment);                    // at any time
//   arenas.serve();                         // there is a process
//   while (auto step = arenas.next(id))     // to the process; then wait for its answer:
//     arenas.done(failure);
//
// One step at a time: a piece takes the process and the driver tens of milliseconds, and copies come in between. Memory
// that is not pinned yet, or cannot be, passes staging memory.
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
  /// `piece_bytes`: pinned by a step; a multiple of 2 MiB.
  explicit pinned_arenas(uint64_t piece_bytes = 64 << 20) : piece_bytes_(piece_bytes) {}

  /// Where the process has a byte: a region of it.
  struct place {
    uint64_t region = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;                 ///< from there to the end of the region
    const std::byte* segment = nullptr; ///< for `use`
  };
  struct step {
    enum class kind : uint8_t { map, pin, forget };
    kind what = kind::map;
    uint64_t region = 0; ///< that it makes or forgets
    uint64_t mapped = 0; ///< pin: the region of the segment
    uint64_t offset = 0; ///< pin: in the segment
    uint64_t bytes = 0;
    std::shared_ptr<const arena> segment; ///< map
  };

  void add(std::shared_ptr<const arena> segment);
  /// Nothing finds it any more. `then` is called when no copy uses it and the process has forgotten it, or has ended; at once
  /// if nothing is known of it.
  void remove(const std::byte* begin, std::function<void()> then);

  /// Nothing: it is not pinned.
  std::optional<place> find(const std::byte* at) const;
  bool empty() const { return pinned_bytes_ == 0; } ///< nothing would be found
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  /// A copy reads the segment. `owners`, of what it reads, are kept until `end_use`, and if the process is lost meanwhile until
  /// that has ended: it may read until then. Returns a number for `end_use`.
  uint64_t use(const std::byte* segment, std::vector<keep_alive> owners);
  void end_use(uint64_t number);

  void serve();
  /// The process is lost: nothing is found. It may read until `ended`.
  void lose();
  void ended();

  /// The next step, whose region has the number `id` if it makes one. Nothing: one is under way, or all is done.
  std::optional<step> next(uint64_t id);
  /// The step is over. After a failure no more is pinned in this process; what is stays.
  void done(const error& failure);

 private:
  struct segment {
    std::shared_ptr<const arena> memory;
    uint64_t mapped = 0;          ///< its region; 0: none
    std::vector<uint64_t> pieces; ///< their regions, in order
    size_t users = 0;
    std::function<void()> leaving; ///< set: it is being removed
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
  std::vector<keep_alive> quarantine_; ///< what a lost process may read
  uint64_t pinned_bytes_ = 0;
  bool serves_ = false;
  bool refused_ = false;
  std::optional<step> under_way_;
  const std::byte* stepping_ = nullptr; ///< the segment of that
};

} // namespace terrace::gpu
