// One notice on its way to a tier below: which of its objects are written there, and why the others are not.
//
// Movers copy between host memory and one other tier. So a tier below host memory is written to, and what a tier above it
// gives up is read from there into host memory: the same passage the other way round.
//
// Pure: the write-through actor asks the tiers and the policy, and passes their answers to this class. In order:
// `omit_present`, `admission` and `admitted`, `pay`, `take_space`, `drop_cleared`, `written`. Used by one thread at a time.
#pragma once

#include "base/eviction_types.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/objects/await.hpp"
#include "tier/objects/confirm.hpp"
#include "tier/objects/publish.hpp"
#include "tier/policy/policy_messages.hpp"
#include "tier/search/probe.hpp"
#include "tier/space/acquire.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/write_budget.hpp"
#include "transfer/write_through_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

enum class passage_way : uint8_t {
  out_of_host, ///< the notice holds objects of host memory
  into_host,   ///< the notice holds objects of a tier above, and the tier is host memory
};

/// Owns the notice, and with it the holds of its objects.
class write_passage {
 public:
  explicit write_passage(write_through_notice notice, passage_way way = passage_way::out_of_host);

  uint64_t bytes() const { return bytes_; } ///< payload of all objects of the notice
  size_t objects() const { return what_.objects->size(); }
  bool wants_any() const { return wanted() != 0; }
  size_t wanted() const; ///< objects that are not refused and not known to be present
  /// Objects that have space in the tier and are to be written.
  size_t to_write() const { return objects_.size(); }

  // ---- replaceable objects ----

  bool replaceable() const { return what_.replaceable; }
  /// The others are not written: something else has their keys. `current`: parallel to the notice's objects.
  void drop_replaced(const std::vector<bool>& current);
  /// To begin again, after others who wrote some of the objects: that may have been what these have replaced.
  write_through_notice again() { return std::move(what_); }

  // ---- admission. Objects are in chain order: after one that is refused, the rest is refused as well ----

  /// Returns how many are refused.
  uint64_t refuse_all() { return refuse_from(0); }

  probe_request probe() const { return {what_.objects, false, false}; }
  /// The tier already has these.
  void omit_present(const object_bitmap& present);

  /// Asks about the wanted objects, except those from the first on that fit into `room_bytes`, because they evict nothing.
  /// No entries: all are admitted.
  admit_request admission(tier_kind tier, admission_rule rule, uint64_t room_bytes);
  /// The answer to the last `admission`. Returns how many are refused.
  uint64_t admitted(size_t count);

  /// Takes the bytes of the wanted objects from the budget. Returns how many are refused.
  uint64_t pay(write_budget& budget, write_budget::time_point now);
  /// At the end: returns the bytes of objects that got no space in the tier.
  void return_unspent(write_budget& budget) const;

  // ---- writing ----

  /// Space in the tier for the wanted objects. It does not wait: a tier in which everything is leased refuses, and host
  /// memory must not wait for it.
  acquire_request space() const;
  /// `memory`: the arena of host memory.
  void take_space(const acquire_answer& acquired, const segmented_arena& memory);

  /// Another passage writes some of the wanted objects: this one ends after it.
  bool others_write() const { return others_write_; }
  await_request await_others() const { return {what_.objects, nullptr}; }

  /// Are the objects still published where they come from?
  confirm_request confirmation() const;
  /// Objects cleared before the tier reserved space for them are not written: a clear would not find them there. `present`: parallel to the confirmation.
  void drop_cleared(const std::vector<bool>& present);

  write_request write(const reservation_ptr& reserved, const context_ptr& context) const;
  read_request read(const reservation_ptr& reserved,
                    const context_ptr& context) const; ///< the same, into host memory

  struct result {
    publish_request complete; ///< of the objects that were written; may be empty
    uint64_t bytes = 0;       ///< their payload
    uint64_t away = 0;        ///< not written, because the device is out of service
    uint64_t failed = 0;      ///< not written, for another reason
    bool stalled =
        false; ///< some of these because the device did not answer, which may still read the memory
  };
  /// `outcomes`: parallel to the objects of `write` or `read`.
  result written(const std::vector<move_outcome>& outcomes) const;
  /// Of what was written, for tiers further down: `held` there. Those that were not are absent.
  write_through_notice onward(const result& written, const hold_ptr& held) const;

  // ---- for whoever asked for the notice's objects to be written ----

  demote_answer& told() { return told_; }
  /// Ends the hold, returns the credit and answers, if somebody asked.
  void end();

 private:
  uint64_t refuse_from(size_t i);
  moved_objects moved(const reservation_ptr& reserved, const context_ptr& context) const;

  /// An object that has space in the tier.
  struct writing {
    size_t object; ///< of the notice
    object_place from, to;
  };

  write_through_notice what_;
  uint64_t bytes_ = 0;
  std::vector<bool> wanted_;   ///< parallel to the notice's objects: still in host memory, and admitted
  std::vector<size_t> asked_;  ///< the objects of the last `admission`
  std::vector<uint64_t> paid_; ///< parallel to the notice's objects: bytes of the budget; empty: no payment
  passage_way way_;
  const segmented_arena* memory_ = nullptr; ///< of host memory
  std::vector<writing> objects_;            ///< absent in the tier, with space reserved there
  bool others_write_ = false;
  demote_answer told_;
};

} // namespace terrace
