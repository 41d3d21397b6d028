// A whole trust group on one thread: tiers, allocators, policy, copiers, and a disk over the simulated ring.
//
//   struct Loads : group_fixture { Loads() { start({.host_objects = 8, .disk_objects = 32}); } };
//   TEST_F(Loads, ComeFromDisk) { store(0, 4); forget_host(0, 4); EXPECT_EQ(load(0, 4)->chunks, 4u); }
//
// A chunk is one object, named by a number; its bytes follow from that number.
#pragma once

#include "actors/lookup/lookup_actor.hpp"
#include "actors/supervision/group_builder.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "index/object_header.hpp"
#include "objects.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/actor_fixture.hpp"

#include <unistd.h>

#include <filesystem>
#include <optional>

namespace terrace::actors::test {

/// A copier that does its copies when it is told to.
struct open_gate {};

/// Where the answer to `ask` will be.
template <class T>
using box = std::shared_ptr<std::optional<T>>;

/// A lookup's answer, by which a load goes: the lease begins with chunk `first`.
struct leased_chunks {
  const lookup_answer& found;
  uint64_t first = 0;
  size_t objects_per_chunk = 1;
  std::shared_ptr<const arrival_counters> arrivals = nullptr;
};

class group_fixture : public terrace::test::actor_fixture {
 public:
  static constexpr uint64_t payload = 8192;
  static constexpr uint64_t physical = physical_bytes_for(payload);

  struct parts_wanted {
    uint64_t host_objects = 8;
    uint64_t disk_objects = 0; ///< 0: no disk; of each path
    size_t disk_paths = 1;
    bool gated_copier = false;
    size_t copiers = 1; ///< gated ones always count as idle
    std::string policy = "lru";
    uint64_t window_objects = 0; ///< of a transfer; 0: as many as host memory has
    admission_rules admission;
    demotion_mode demotion = demotion_mode::write_through;
    lease_bounds leases{100, 100, 100};
    clock_source clock = clock_source::steady;
    std::string disk_allocator = "size_class";
    uint64_t disk_slot_bytes = 0;
    uint64_t segment_objects = 0;        ///< of host memory; 0: one segment
    std::vector<tier_config> more_tiers; ///< that the test joins itself, and their policies
  };

  void start(const parts_wanted& wanted);
  void TearDown() override;

  /// Ends the group and starts it again on the same file: after all was written down, or as a crash of the daemon leaves
  /// it (what the ring took is in the file). `meanwhile` is called in between.
  void restart(bool in_order = true, const std::function<void()>& meanwhile = {});

  // ---- asking ----

  /// Sends a request and keeps its answer; an actor that has ended answers `internal`.
  template <class R, class Handle, class M>
  box<R> ask(const Handle& who, M message) {
    auto answer = std::make_shared<std::optional<R>>();
    sys.spawn([answer, who, message = std::make_shared<M>(std::move(message))](caf::event_based_actor* self) {
      self->request(who, caf::infinite, std::move(*message))
          .then([answer](const R& value) { *answer = value; },
                [answer](const caf::error&) {
                  R lost;
                  lost.failure = {errc::internal, "the test's peer has ended"};
                  *answer = std::move(lost);
                });
    });
    return answer;
  }

  box<store_result> begin_store(uint64_t first, size_t count, context_ptr of = nullptr,
                                caf::actor* worker = nullptr);
  box<load_result> begin_load(uint64_t first, size_t count, context_ptr of = nullptr,
                              caf::actor* worker = nullptr, const leased_chunks* leased = nullptr,
                              bool copies = true);
  store_result store(uint64_t first, size_t count);
  load_result load(uint64_t first, size_t count);
  lookup_answer lookup(const batch_ptr& objects, bool hold = false, bool copies = false);

  // ---- looking and preparing ----

  hold_ptr hold(const tier_actor& tier, uint64_t first, size_t count);
  size_t present(const tier_actor& tier, uint64_t first, size_t count);
  tier_report report(const tier_actor& tier);
  uint64_t host_used() { return report(group->host).usage.used_bytes; }

  /// Why chunk `number` has left, or was not taken.
  std::optional<departure> why_gone(uint64_t number) {
    return group->events->departures().find(to_entry_key(chain(number, 1)->keys[0]));
  }

  clear_answer clear(const tier_actor& tier, std::optional<space_id> space = std::nullopt);

  /// Takes objects out of one tier, as a discard does.
  void forget(const tier_actor& tier, uint64_t first, size_t count);
  void forget_host(uint64_t first, size_t count) { forget(group->host, first, count); }
  const tier_actor& disk_tier() { return group->disk()->tier; }

  /// Chunk `number`'s place in the region has its bytes, or has never been written to.
  bool delivered(uint64_t number) const {
    return region_is(number, [&](size_t i) { return content(number, i); });
  }
  bool untouched(uint64_t number) const {
    return region_is(number, [](size_t) { return std::byte{0xcc}; });
  }
  static std::byte content(uint64_t number, size_t i) {
    return static_cast<std::byte>(number * 31 + i % 253);
  }

  std::vector<std::string> disk_files() const;

  /// Where an object's header block lies in its path's file.
  uint64_t file_place(uint64_t number);

  parts_wanted wanted; ///< as it was started; what is changed counts from a restart on
  group_probes probes;
  std::vector<std::string> disk_warnings; ///< of the disk
  recovery_counts recovered;              ///< by the last start, on the first path
  size_t recovered_spaces = 0;            ///< by the last start
  uint64_t unplaced = 0;
  std::shared_ptr<trust_group> group;
  std::shared_ptr<const disk_paths> paths; ///< of its disk
  std::shared_ptr<disk_service> service;   ///< of these
  space_ptr in;
  account_ptr account;           ///< of all lookups and loads, or that of the client whose turn it is
  caf::actor gate;               ///< of a gated copier
  std::vector<caf::actor> gates; ///< of all
  std::filesystem::path folder;

 private:
  template <class F>
  bool region_is(uint64_t number, F&& expected) const {
    for (size_t i = 0; i < payload; ++i)
      if (region_[number * payload + i] != expected(i))
        return false;
    return true;
  }
  void end();
  void join();

  outside_memory outside() { return {region_.data(), -1, region_.size(), nullptr}; }
  std::shared_ptr<const scatter_gather> runs(uint64_t first, size_t count);

  static constexpr size_t chunks_max = 640;
  std::vector<std::byte> region_ = std::vector<std::byte>(chunks_max * payload);
  std::shared_ptr<copier_pool> copiers_;
  group_plan plan_;
};

} // namespace terrace::actors::test

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::test::open_gate)
