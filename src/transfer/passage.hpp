// Objects on their way from the tiers that have them into another tier: what is wanted, the space for it, which tier each
// object comes from, what has become of it, and what is published.
//
//   passage pass({.in = space, .objects = batch, .from = held, .way = direction::into_host, .memory = &arena});
//   pass.ask_for(request);                      // space in the tier of arrival for the objects that `has` names
//   auto failure = co_await bring(self, pass, from, to);                            (actors/transfer/bring.hpp)
//
// Movers copy between host memory and one other tier, so one end of a passage is host memory: `direction` says which. Objects
// that go into host memory are confirmed after they were read: reading takes long, and what was cleared meanwhile is not brought
// back. Objects that go out of it are confirmed before: a device is not written in vain.
//
// Pure: `bring` asks tiers and movers, and passes their answers to this class. In order: `space` and `add_space`;
// `confirmation` and `add_confirmed` of each part, before or after `read` or `write` and `add_outcomes`; `arrived`, `publication`
// and `add_published`. Used by one thread at a time. Indices of objects are those in the batch.
#pragma once

#include "base/request_context.hpp"
#include "base/tier_properties.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_hold.hpp"
#include "transfer/mover_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace terrace {

enum class direction : uint8_t { into_host, out_of_host };

class passage {
 public:
  struct plan {
    space_ptr space;
    batch_ptr objects;
    tier_holds from; ///< what the tiers hold, fastest first; parallel to the objects
    direction way = direction::into_host;
    const segmented_arena* memory = nullptr; ///< of host memory
    context_ptr context;                     ///< of the movers' work; may be null
    const char* name = "transfer";           ///< in the error if the context ends
    uint64_t inference = 0;                  ///< for which the objects travel; 0: none or unknown
    bool hold = false;                       ///< what is published stays held
    read_limit read_by = read_limit::max();  ///< as in moved_objects
    std::vector<uint64_t> checksums{};       ///< of the payloads, parallel to the objects; empty: unknown
  };
  explicit passage(plan steps) : of_(std::move(steps)) {}

  const plan& planned() const { return of_; }
  /// True if a tier has the object.
  bool has(size_t object) const { return source_of(object) != of_.from.size(); }

  // ---- space in the tier of arrival ----

  void ask_for(acquire_request space) { space_ = std::move(space); }
  acquire_request space() { return std::move(space_); }
  /// Divides the reserved objects among the tiers that have them. False: there is no space, and nothing moves.
  bool add_space(acquire_answer acquired);
  /// The tier of arrival refused the space, and this is why; ok: it did not.
  const error& refused() const { return acquired_.failure; }
  const acquire_answer& acquired() const { return acquired_; }
  /// The first object that a tier has, and that is neither in the tier of arrival nor gets space there. SIZE_MAX: none.
  size_t first_left() const { return first_left_; }
  bool others_write() const { return acquired_.any(acquired_state::pending); } ///< some of the objects

  // ---- moving ----

  /// The objects that come from one tier: those to be moved, later those that were.
  struct part {
    tier_kind tier = nowhere;
    hold_ptr held;
    std::vector<size_t> objects;
  };
  const std::vector<part>& parts() const { return parts_; }
  size_t size() const; ///< objects of all parts
  bool empty() const { return size() == 0; }
  std::vector<size_t> objects() const; ///< of all parts, part by part

  read_request read(const part& piece) const { return {moved(piece)}; }   ///< into host memory
  write_request write(const part& piece) const { return {moved(piece)}; } ///< out of it

  /// Who is told of objects that were not moved.
  struct reports {
    discard_notice damaged; ///< the tier they come from: they cannot be read
    detach_notice stalled;  ///< the tier of arrival: others need not wait until the kernel returns the memory
  };
  /// Removes from the part what was not moved. `outcomes`: parallel to its objects.
  reports add_outcomes(size_t part, const std::vector<move_outcome>& outcomes);

  /// What became of the objects that were to be moved.
  struct outcome {
    std::vector<size_t> lost;   ///< not moved, for whatever reason
    uint64_t away = 0;          ///< of these: the device is out of service
    bool stalled = false;       ///< of some of these a device has not let go
    bool late = false;          ///< others, which are not lost, did not come in time
    uint64_t present_bytes = 0; ///< of those that arrived: payload that the device had already
  };
  const outcome& ended() const { return ended_; }
  uint64_t payload_bytes(const part& piece) const; ///< of its objects

  /// Are the part's objects still published where they come from?
  confirm_request confirmation(const part& piece) const;
  void add_confirmed(size_t part, const std::vector<bool>& present);

  // ---- arrival ----

  /// Called when all that can has arrived. False: it is not published.
  void on_arrival(std::function<bool()> keeps) { keeps_ = std::move(keeps); }
  bool arrived() const { return !keeps_ || keeps_(); }

  /// Of `objects()`.
  publish_request publication() const;
  void add_published(const publish_answer& answer);
  /// Parallel to `objects()`. Null: nothing was published, or it is not held.
  const hold_ptr& published() const { return published_; }

 private:
  /// The position of the fastest tier that has the object; their number if none has.
  size_t source_of(size_t object) const;
  moved_objects moved(const part& piece) const;

  plan of_;
  acquire_request space_;
  acquire_answer acquired_;
  std::vector<part> parts_;
  size_t first_left_ = SIZE_MAX;
  outcome ended_;
  std::function<bool()> keeps_;
  hold_ptr published_;
};

} // namespace terrace
