// A window of a load: what is held in host memory, what is read from the tiers below, and what is delivered.
//
// Pure: a load asks the tiers, movers and copiers, and passes their answers to this class. In order, per round:
// `begin_below`, or else `present` and `add_present`; to read from below: `leased_below`, `reading`, `space`, the passage,
// during which `publishes` is asked, and `add_read`; to wait for others: `release_and_wait`. At the end `after_rounds`,
// `copy`, `deliver`, `after_delivery`. Used by one thread at a time. Indices of objects are those in the window.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/tier_index.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/load_plan.hpp"
#include "transfer/passage.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

class load_window {
 public:
  /// After this many rounds in which others kept taking or abandoning what the window waits for, the load gives up.
  static constexpr int attempts_max = 16;
  /// Each round that delivers nothing halves the window. A single present object is held immediately, so this
  /// is reached only with chunks of many objects, and only by chance.
  static constexpr unsigned fruitless_max = 48;

  /// The next window of the load, which outlives it. `bytes_max`: of the arena, unless all must be held at once.
  load_window(load_plan& load, uint64_t bytes_max) : load_window(load, bytes_max, load.begin) {}
  /// The window that begins with object `begin`, behind others that are in progress: it does not wait for memory, which they
  /// may hold.
  load_window(load_plan& load, uint64_t bytes_max, size_t begin);

  size_t begin() const { return part_.begin; }
  size_t end() const { return part_.end; }
  /// It is beside others, so it does not wait for memory.
  void wait_for_nothing() { waits_ = false; }
  bool waits() const { return waits_; }

  const batch_ptr& objects() const { return part_.objects; }

  // ---- a round ----

  struct tiers_below {
    bool any = false;   ///< there are tiers below
    bool reads = false; ///< at least one can be read now
  };

  /// Begins a round of a window of which something is in tiers below alone: nobody is asked what is present, because the
  /// answer about the space says so. The lease tells, or the index of host memory, which is read if it can be read now and the
  /// window has few objects. False: the round begins with `present`.
  bool begin_below(const tier_index& host, const tiers_below& below);
  static constexpr size_t read_objects_max = 128; ///< the owner of the index waits for its readers
  /// Begins a round: holds what is present in host memory.
  acquire_request present();

  enum class step : uint8_t {
    ready,      ///< everything available is held or reserved
    read_below, ///< the rest may be in tiers below
    await,      ///< others are writing some of it
  };
  /// Error: `no_space`, if what a load without a copy holds may not stay held.
  result<step> add_present(acquire_answer acquired, const tiers_below& below);

  /// Releases everything before it waits for others, because a waiting request holds nothing. False: it gives up.
  bool release_and_wait();
  error gave_up() const; ///< what is left is absent, unless a lease held it

  // ---- reading from below ----

  /// What the lease holds there of the window; nullopt: nothing, so the tiers are asked. Releases everything first.
  std::optional<tier_holds> leased_below();
  /// The way of what the tiers below hold into host memory.
  passage::plan reading(tier_holds below) const;
  /// Space for exactly the objects that tiers below hold and host memory lacks, up to the first that is nowhere. Error:
  /// `no_space`, if the request may not wait for memory that leases hold.
  result<acquire_request> space(const passage& pass);
  void refused_space(const error& why);
  /// What the passage has read is published in host memory. False: it is delivered, and not kept. The window must publish what
  /// others wait for, because it waits for them next.
  bool publishes(const passage& pass);
  /// What the passage has found in host memory, and what it has brought.
  void add_read(const passage& pass);
  /// After reading from below.
  step after_reading(bool others);

  // ---- delivery ----

  enum class next : uint8_t {
    deliver,
    again, ///< with a smaller window
    end,   ///< of the load, with the failure, if there is one
  };
  /// `failure`: of the rounds; `ok` afterwards if what was delivered is all that there is room for.
  next after_rounds(error& failure);

  bool copies() const { return load_.subject.copies() && usable_ != 0; }
  copy_request copy() const;
  /// Of the objects of one pool, which is the `pool`th of each chunk.
  copy_request copy_pool(size_t pool) const;
  /// Everything is in host memory.
  bool whole() const { return usable_ == part_.size(); }

  /// Accounts the window's usable chunks as delivered. Returns their bytes by the tier in which they were found.
  std::array<uint64_t, tier_kinds> deliver();
  /// Nullopt: the load goes on. Otherwise it ends with this error, or ok.
  std::optional<error> after_delivery();

  /// What is offered to the tiers below again, because objects served from host memory may be missing there. Null:
  /// nothing.
  hold_ptr from_host() const;

 private:
  copy_request begin_copy() const;
  copied_object copied(size_t object) const;
  device_generations generations(size_t first, size_t count) const;
  void keep(const acquire_answer& acquired);
  void begin_round();
  bool notes_access() const { return load_.subject.note_access && awaited_ == 0; }
  void count_others(const acquire_answer& acquired);
  void find_gap(const passage& pass);
  void cut_at_first_gap();
  bool may_stay(uint64_t held_bytes, bool any_below);
  bool leased(size_t object) const;
  size_t deliverable() const { return usable_ - usable_ % load_.subject.objects_per_chunk; }

  load_plan& load_;
  bool waits_; ///< for memory
  bool whole_; ///< one window was to hold everything
  transfer_window part_;
  std::vector<object_place> places_; ///< parallel to its objects: in host memory
  std::vector<tier_kind> source_;    ///< parallel: where it was found
  std::vector<bool> lost_;           ///< parallel: could not be read, or was damaged
  size_t first_left_ =
      SIZE_MAX;             ///< the first object evicted from host memory while the load waited for space
  size_t gap_ = SIZE_MAX;   ///< the first object that is in no tier
  size_t asked_ = SIZE_MAX; ///< objects of the chunks before it
  size_t usable_ = 0;       ///< objects from the beginning on that are in host memory now
  std::vector<hold_ptr> holds_;
  reservation_ptr passing_; ///< objects that are delivered and not kept
  std::optional<lease_account::claim> claimed_,
      claimed_below_;        ///< without a copy: for what it holds, and reads
  bool below_round_ = false; ///< it began with `begin_below`
  bool late_ = false;        ///< some of it has not come in time
  int awaited_ = 0;          ///< rounds in which others were writing some of its objects
};

} // namespace terrace
