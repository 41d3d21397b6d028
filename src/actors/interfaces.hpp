// The typed interfaces of the actors. A sentence per message says who sends it and what is returned; answers
// marked (delayed) may wait, and the text says what releases them.
#pragma once

#include "actors/gpu/device_messages.hpp"
#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "group/group_messages.hpp"
#include "group/lookup_registry.hpp"
#include "group/session_messages.hpp"
#include "memory/arena_resize.hpp"
#include "metrics/exposition.hpp"
#include "runtime/io_port.hpp"
#include "runtime/local_message.hpp"
#include "storage/disk/disk_messages.hpp"
#include "storage/disk/path_journal.hpp"
#include "storage/pending_clears.hpp"
#include "tier/messages.hpp"
#include "tier/objects/index_keeping.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/policy/policy_messages.hpp"
#include "tier/tier_config.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/write_through_messages.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/detail/tuple_vals.hpp>
#include <caf/typed_actor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <type_traits>
#include <vector>

namespace terrace {

// Messages to listeners and connections.

/// The receiver accepts no new clients and no new requests, and ends when everything in flight is answered.
struct drain_notice {};

/// A new connection of the process `pid` reports that the process no longer accesses anything of the
/// receiver.
struct confirm_notice {
  pid_t pid = 0;
};

/// Asks a silent connection or an observer to leave, because another connection needs its place.
struct leave_notice {};

/// The creator of a connection tells it, once, that it is in the directory.
struct begin_notice {};

/// Makes a connection continue work that is done in slices or came from another thread.
struct resume_notice {
  std::shared_ptr<std::function<void()>> work;
};

// Messages from the daemon to its supervisor after a reload.

/// Sets the policy of a tier in all groups, after a reload. Empty: unchanged.
struct policies_notice {
  std::string host;
  std::string disk;
};

/// How much may be written to the remote tiers of each group, in the order of `groups`, after a reload.
struct remote_budgets_notice {
  std::vector<std::vector<write_rates>> of_groups;
};

/// The new host memory of each group, in the order of `groups`. Failures are reported to `warn`.
struct resize_groups {
  std::vector<uint64_t> host_bytes;
};

} // namespace terrace

namespace terrace::remote { // store_reports.hpp
struct store_status_request;
struct store_status;
struct store_probe_request;
struct store_probe;
struct store_sweep_request;
struct store_sweep;
struct new_credentials_notice;
struct all_credentials_notice;
} // namespace terrace::remote

namespace terrace::actors {

// The first message to the keeper of a tier's index.

/// The first message of a durable tier to its disk set, and from there to all journals: it names the tier
/// whose index they keep.
struct start_journal {
  caf::typed_actor<caf::replies_to<image_request>::with<image_answer>> tier;
  std::vector<journal_sums> recorded; ///< recorded part of the index, by path, for checks; empty: unknown
};

// The contents of messages between actors. The conversation of a tier is defined in tier/messages.hpp.

/// A request ended early: the receiver answers whatever waits for it now.
struct sweep_notice {};

/// A tier sends this to itself for the next part of a clear.
struct clear_turns;
struct clear_turn_notice {
  std::shared_ptr<clear_turns> work;
};

/// A tier sends this to itself for the next part of a notice about many objects.
struct next_part_notice {};

/// A preparer sends this to itself: blocking work, one part at a time.
struct open_disk_notice {};
struct commit_piece_notice {};

/// Every message between actors is in this list. Messages are moved in memory and never serialized. A message
/// of a single room may instead be allowed there.
template <class Message>
struct message_tag {};
struct open_device_answer;
struct watch_device_notice;
struct serve_tier_notice;
struct tier_handle;
struct tier_joined_notice;
struct find_session_answer;
struct find_session_request;
template <class... Message>
struct message_list : message_tag<Message>... {};

using messages = message_list<
    release_notice, abandon_notice, detach_notice, probe_request, access_notice, probe_answer,
    acquire_request, acquire_answer, publish_request, publish_answer, await_request, await_answer,
    discard_notice, remove_request, remove_answer, confirm_request, confirm_answer, count_objects_request,
    count_objects_answer, list_objects_request, list_objects_answer, clear_request, clear_answer,
    tier_status_request, tier_report, allocate_request, allocate_answer, free_notice, room_request, room_made,
    evictable_notice, grow_notice, retire_request, retire_answer, policy_notes, victim_request, victim_answer,
    write_credit_request, write_credit_answer, empty_spaces_request, empty_spaces_answer,
    forget_spaces_notice, usage_request, usage_answer, restored_request, restored_answer, notes_mark,
    inference_begin, inference_end, uses_notice, admit_request, admit_answer, set_policy_request,
    set_policy_answer, policies_request, policies_report, shadow_use, shadow_clear, shadow_request,
    shadow_report, copy_request, copy_answer, seal_request, seal_answer, check_request, check_answer,
    disk_request, disk_answer, read_request, write_request, move_answer, close_mover_request,
    close_mover_answer, register_memory, add_memory, forget_memory, journal_stalled, write_through_notice,
    finish_writes_request, finish_writes_answer, write_credit_notice, demote_request, demote_answer,
    written_notice, write_down_request, write_down_answer, tier_joined_notice, index_changes, image_request,
    image_answer, forget_request, forget_answer, close_journal_request, close_journal_answer,
    open_space_request, open_space_answer, idle_spaces_request, idle_spaces_answer, forget_spaces_request,
    forget_spaces_answer, add_lease_notice, reserve_spaces_request, reserve_spaces_answer, use_lease_request,
    use_lease_answer, mark_revoked_request, mark_revoked_answer, revoke_request, revoke_answer,
    leases_request, leases_answer, pin_request, pin_answer, unpin_request, unpin_answer, end_lease_notice,
    end_owner_notice, begin_lookup_request, begin_lookup_answer, finish_lookup_notice, await_lookup_request,
    await_lookup_answer, cancel_lookup_request, cancel_lookup_answer, open_session_request,
    open_session_answer, find_session_request, find_session_answer, use_session_request, use_session_answer,
    save_session_request, save_session_answer, session_used, session_saved, park_session_request,
    park_session_answer, yield_holds_request, yield_holds_answer, close_session_request, close_session_answer,
    sessions_request, refer_tail_request, refer_tail_answer, sessions_answer, group_status_request,
    group_report, sweep_notice, clear_turn_notice, next_part_notice, start_journal, resize_memory,
    memory_prepared, policies_notice, quotas_notice, quotas_changed_notice, leases_grew_notice, resize_groups,
    remote_budgets_notice, write_budget_notice, begin_notice, drain_notice, confirm_notice, leave_notice,
    resume_notice, disk_prepared, memory_committed, save_prompt_request, save_prompt_answer,
    find_prompt_request, find_prompt_answer, forget_prompts_request, forget_prompts_answer, open_disk_notice,
    commit_piece_notice, add_source, remember_clear_request, remember_clear_answer, check_tier_request,
    check_tier_answer, check_held_request, check_held_answer, end_check_notice, check_slice_notice,
    check_policy_request, check_answer_texts, check_journal_request, check_space_request, check_space_answer,
    check_writes_request, check_writes_answer, check_group_request, check_group_answer,
    check_sessions_request, check_sessions_answer, check_owner_request, check_client_request,
    check_client_answer, import_region_request, import_region_answer, drop_region_notice, end_region_request,
    end_region_answer, share_region_request, share_region_answer, open_device_request, open_device_answer,
    watch_device_notice, device_changed_notice, serve_tier_notice, device_load_request, direct_read_request,
    direct_read_answer, find_request, find_answer, remove_values_request, remove_values_answer,
    volume_joined_notice, remote::store_status_request, remote::store_status, remote::store_probe_request,
    remote::store_probe, remote::store_sweep_request, remote::store_sweep, remote::new_credentials_notice,
    remote::all_credentials_notice>;

} // namespace terrace::actors

template <class Message>
requires std::is_base_of_v<terrace::actors::message_tag<Message>, terrace::actors::messages>
struct caf::allowed_unsafe_message_type<Message> : std::true_type {
};

template <class Base, class Message>
requires std::is_base_of_v<terrace::actors::message_tag<Message>, terrace::actors::messages>
class caf::detail::tuple_vals_impl<Base, Message> : public terrace::runtime::local_value<Base, Message> {
 public:
  using super = message_data;
  using terrace::runtime::local_value<Base, Message>::local_value;
};

namespace terrace::actors {

/// TIER: owns the objects of one tier, their states and their holds.
using tier_actor = caf::typed_actor<
    // From lookups: which objects are published; with `hold`, held.
    caf::replies_to<probe_request>::with<probe_answer>,
    // From lookups that probed in slices: the objects they found and hold were accessed.
    caf::reacts_to<access_notice>,
    // From transfers: hold or reserve, all or nothing. (delayed: until the allocator has room, or the context
    // ends)
    caf::replies_to<acquire_request>::with<acquire_answer>,
    // From the transfer that wrote them.
    caf::replies_to<publish_request>::with<publish_answer>,
    // From transfers that found `pending`. (delayed: until those objects are published or abandoned)
    caf::replies_to<await_request>::with<await_answer>,
    // From handles that have ended.
    caf::reacts_to<release_notice>, caf::reacts_to<abandon_notice>,
    // From loads whose read has stalled.
    caf::reacts_to<detach_notice>,
    // From the finder of wrong bytes in an object, and from the connection of an operator who evicts a prompt.
    caf::reacts_to<discard_notice>,
    // From connections of Redis clients that have replaced or removed values.
    caf::replies_to<remove_request>::with<remove_answer>,
    // From transfers between tiers, after their destination is reserved: are the objects still valid?
    caf::replies_to<confirm_request>::with<confirm_answer>,
    // From clear requests. (delayed, in a durable tier: until what was cleared cannot come back)
    caf::replies_to<clear_request>::with<clear_answer>,
    // From itself: the next part of a clear.
    caf::reacts_to<clear_turn_notice>,
    // From itself: the next part of a notice about many objects.
    caf::reacts_to<next_part_notice>,
    // From its journal, while it takes a checkpoint.
    caf::replies_to<image_request>::with<image_answer>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>,
    // From its allocator, short of space; answered with `room_made`.
    caf::reacts_to<room_request>,
    // From the builder of the group: a tier below that gets objects of this one. From the hold of a `demote_request`.
    caf::reacts_to<tier_joined_notice>, caf::reacts_to<written_notice>,
    // From the supervisor, at the end. (delayed: until the tiers below that get what is evicted have everything)
    caf::replies_to<write_down_request>::with<write_down_answer>,
    // From the memory actor. (delayed: until the segments being removed are empty)
    caf::reacts_to<grow_notice>, caf::replies_to<retire_request>::with<retire_answer>,
    // From connections that open a space while the group has too many: which spaces have no objects? Then, those
    // that the group has forgotten.
    caf::replies_to<empty_spaces_request>::with<empty_spaces_answer>, caf::reacts_to<forget_spaces_notice>,
    // From the connection of an operator, and from the supervisor after a reload.
    caf::reacts_to<quotas_changed_notice>,
    // From whoever charges a lease, while requests wait for what transfers hold.
    caf::reacts_to<leases_grew_notice>,
    // From checks: the next part of its objects. (delayed: until its policy and its allocator have compared them.) Then how
    // some of them are held; and that the check is over.
    caf::replies_to<check_tier_request>::with<check_tier_answer>,
    caf::replies_to<check_held_request>::with<check_held_answer>, caf::reacts_to<end_check_notice>,
    // From itself, in builds that check all the time.
    caf::reacts_to<check_slice_notice>,
    // From status requests, and from the connections of Redis clients.
    caf::replies_to<tier_status_request>::with<tier_report>,
    caf::replies_to<count_objects_request>::with<count_objects_answer>,
    // From the connections of subscribers.
    caf::replies_to<list_objects_request>::with<list_objects_answer>>;

/// ALLOCATOR: owns the free space of one arena and the queue of requests waiting for it.
using allocator_actor = caf::typed_actor<
    // From its tier. (delayed: until enough is free, nothing more can be evicted and `may_wait` is false, or
    // the context ends)
    caf::replies_to<allocate_request>::with<allocate_answer>,
    // From its tier: freed space.
    caf::reacts_to<free_notice>,
    // From its tier: the answer to each `room_request`; after a failed round, that another one would end differently.
    caf::reacts_to<room_made>, caf::reacts_to<evictable_notice>,
    // From its tier. (delayed: until the segments being removed are empty)
    caf::reacts_to<grow_notice>, caf::replies_to<retire_request>::with<retire_answer>,
    // From its tier: answer waiting requests whose context has ended.
    caf::reacts_to<sweep_notice>, caf::replies_to<usage_request>::with<usage_answer>,
    // From its tier, after all that it has freed: the objects that have its extents.
    caf::replies_to<check_space_request>::with<check_space_answer>>;

/// POLICY: the eviction policies of all tiers of a trust group.
using policy_actor = caf::typed_actor<
    // From tiers, one batch per request.
    caf::reacts_to<policy_notes>,
    // From the preparer, before their tier serves.
    caf::replies_to<restored_request>::with<restored_answer>,
    // From tiers, after batches of notes: returned when all earlier notes have been applied (tier_changes.hpp).
    caf::replies_to<notes_mark>::with<notes_mark>,
    // From connections: the begin and end of inference requests.
    caf::reacts_to<inference_begin>, caf::reacts_to<inference_end>,
    // From itself: the next part of a long chain.
    caf::reacts_to<uses_notice>,
    // From tiers: proposals, best victims first. The tier refuses those that were pinned since.
    caf::replies_to<victim_request>::with<victim_answer>,
    // From write-through: which objects to admit to a tier.
    caf::replies_to<admit_request>::with<admit_answer>,
    // From connections, and from the supervisor after a reload: the tier's residents stay.
    caf::replies_to<set_policy_request>::with<set_policy_answer>,
    // From tiers, after all notes: the objects that it has to know.
    caf::replies_to<check_policy_request>::with<check_answer_texts>,
    // From connections, for status.
    caf::replies_to<policies_request>::with<policies_report>>;

/// SHADOW: the hits that other policies and capacities would have had. No request waits for it.
using shadow_actor = caf::typed_actor<
    // From connections: the access to a chain (after checking `credit_gate`), the end of an inference, and
    // clears.
    caf::reacts_to<shadow_use>, caf::reacts_to<inference_end>, caf::reacts_to<shadow_clear>,
    // From connections, for status.
    caf::replies_to<shadow_request>::with<shadow_report>>;

/// DISK: the file of one path of a disk tier.
using disk_actor = caf::typed_actor<
    // From the disk set: reads or writes. (delayed: until each has completed or stalled)
    caf::replies_to<disk_request>::with<disk_answer>,
    // From the journal of the same path.
    caf::reacts_to<journal_stalled>,
    // From the disk set: memory that is read into and written from.
    caf::reacts_to<register_memory>, caf::reacts_to<add_memory>,
    caf::replies_to<forget_memory>::with<retire_answer>,
    // From its ring.
    caf::reacts_to<runtime::io_done>>;

/// JOURNAL: the persistent index of one path of a disk tier.
using journal_actor = caf::typed_actor<
    // From the disk set, as the first message.
    caf::reacts_to<start_journal>,
    // From the disk set, after all changes: the index's records of the path.
    caf::replies_to<check_journal_request>::with<check_answer_texts>,
    // From the disk set: objects of the path that were published or dropped.
    caf::reacts_to<index_changes>,
    // From the disk set. (delayed: until it is durable, or the device does not respond)
    caf::replies_to<forget_request>::with<forget_answer>,
    // From the disk set. (delayed: until a last checkpoint is written, or cannot be)
    caf::replies_to<close_journal_request>::with<close_journal_answer>,
    // From its ring.
    caf::reacts_to<runtime::io_done>>;

/// The persistent index of a durable tier.
using index_keeper = caf::typed_actor<
    // From the tier, first: the source of the index.
    caf::reacts_to<start_journal>,
    // From the tier, after all changes: what the index has. (delayed: until the journals have compared it)
    caf::replies_to<check_journal_request>::with<check_answer_texts>,
    // From the tier: objects that were published or dropped.
    caf::reacts_to<index_changes>,
    // From the tier. (delayed: until it is durable on all paths in service)
    caf::replies_to<forget_request>::with<forget_answer>>;

/// MOVER: copies objects between host memory and a tier below it.
using mover_actor = caf::typed_actor<
    // From loads. (delayed: until each object is read and verified, or has failed)
    caf::replies_to<read_request>::with<move_answer>,
    // From write-through. (delayed: until each object is written, or has failed)
    caf::replies_to<write_request>::with<move_answer>,
    // From the supervisor and the memory actor: host memory that objects are read into and written from.
    caf::reacts_to<register_memory>, caf::reacts_to<add_memory>,
    // From the memory actor. (delayed: until nothing refers to the memory)
    caf::replies_to<forget_memory>::with<retire_answer>,
    // From the supervisor, when the tier no longer changes. (delayed: until a restart would find all objects,
    // as far as possible)
    caf::replies_to<close_mover_request>::with<close_mover_answer>>;

/// DISK SET: all paths of a disk tier as one: its mover and the keeper of its index.
using disk_set_actor = mover_actor::extend_with<index_keeper>;

/// REMOTE STORE: the server of a remote tier: its mover and the keeper of its index.
using remote_store_actor = disk_set_actor::extend<
    // From connections, for lookups that other tiers do not answer. (delayed: until the store has answered, for a short time)
    caf::replies_to<find_request>::with<find_answer>,
    // From connections, for operators. (delayed: until the store has removed them, or its connection is lost)
    caf::replies_to<remove_values_request>::with<remove_values_answer>,
    // From connections, for operators. (delayed: until the store has answered, or its connection is lost)
    caf::replies_to<remote::store_status_request>::with<remote::store_status>,
    // From connections, for operators; an actor of their own answers them. (delayed: until the last step is done or fails; until
    // all keys were looked at, or the context ends)
    caf::replies_to<remote::store_probe_request>::with<remote::store_probe>,
    caf::replies_to<remote::store_sweep_request>::with<remote::store_sweep>,
    // From the supervisor, after a reload.
    caf::reacts_to<remote::new_credentials_notice>,
    // From the supervisor, once the volume's tier has joined.
    caf::reacts_to<volume_joined_notice>>;

/// STORE INSPECTOR: asks a remote store for an operator, once, over a connection of its own. The remote store spawns it.
using store_inspector_actor = caf::typed_actor<
    // From connections, through the remote store. (delayed: as there)
    caf::replies_to<remote::store_probe_request>::with<remote::store_probe>,
    caf::replies_to<remote::store_sweep_request>::with<remote::store_sweep>>;

/// WRITE-THROUGH: writes objects stored in a tier to the tier below.
using write_through_actor = caf::typed_actor<
    // From stores and loads, with a hold on the objects to write.
    caf::reacts_to<write_through_notice>,
    // From stores, before they take memory. (delayed: until this much more may wait for the tier below, or
    // the context ends)
    caf::replies_to<write_credit_request>::with<write_credit_answer>,
    // From credits that have ended.
    caf::reacts_to<write_credit_notice>,
    // From the tier above. (delayed: until the objects are written, or will not be)
    caf::replies_to<demote_request>::with<demote_answer>,
    // From the supervisor. (delayed: until nothing waits to be written)
    caf::replies_to<finish_writes_request>::with<finish_writes_answer>,
    // From the supervisor, after a reload.
    caf::reacts_to<write_budget_notice>,
    // From checks: whether anything waits to be written.
    caf::replies_to<check_writes_request>::with<check_writes_answer>,
    // From the builder of the group, into host memory: a tier further down gets what arrives there.
    caf::reacts_to<tier_joined_notice>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>>;

/// Tells a tier, and the write-through into host memory, that a tier has joined its group below.
struct tier_joined_notice {
  std::shared_ptr<const tier_handle> tier;
  /// Writes objects of the tier that is told to the one that has joined. Null: that is not the next one, gets nothing from here,
  /// and what it has need not be written to the next one.
  write_through_actor by;
  demotion_mode mode = demotion_mode::off; ///< when it gets them
};

/// COPIER: a thread that copies and verifies bytes, in slices: groups and connections get equal shares of it
/// (transfer/copy_queue.hpp).
using copier_actor = caf::typed_actor<caf::replies_to<copy_request>::with<copy_answer>,
                                      // Writes the header block in front of each payload, including the
                                      // checksum.
                                      caf::replies_to<seal_request>::with<seal_answer>,
                                      // Verifies header and checksum of objects read from disk.
                                      caf::replies_to<check_request>::with<check_answer>>;

/// Copies between arenas and memory outside: a copier, or the device of a region.
using copying_actor = caf::typed_actor<caf::replies_to<copy_request>::with<copy_answer>>;

/// The owner of a tier in memory of a device.
using device_watcher = caf::typed_actor<
    // From the device: its process is there, or is lost.
    caf::reacts_to<device_changed_notice>>;
struct watch_device_notice {
  device_watcher who;
};

/// DEVICE: the process of one GPU, the regions that it maps, and the copies to and from them.
using device_actor = copying_actor::extend<
    // From connections, and from the mover of a tier in its memory. (delayed: until the process has mapped it)
    caf::replies_to<import_region_request>::with<import_region_answer>,
    // From the mover of a tier in its memory, once.
    caf::reacts_to<watch_device_notice>,
    // From the same, of that memory. (delayed: until the process has a descriptor)
    caf::replies_to<share_region_request>::with<share_region_answer>,
    // From the last owner of a region.
    caf::reacts_to<drop_region_notice>,
    // From loads: objects of files into a region. (delayed: until they are there or cannot be)
    caf::replies_to<direct_read_request>::with<direct_read_answer>,
    // From connections: of a region that is new, and again when they have given it up. (delayed: until nothing accesses it)
    caf::replies_to<end_region_request>::with<end_region_answer>,
    // From the devices: host memory that the process may read itself.
    caf::reacts_to<add_memory>,
    // From the devices. (delayed: until it reads that memory no more)
    caf::replies_to<forget_memory>::with<retire_answer>>;

struct open_device_answer {
  error failure;
  device_actor device;
};

/// DEVICES: the devices by name.
using gpu_registry_actor = caf::typed_actor<
    // From connections, and from the mover of a tier. Makes the device's actor; no process is started yet.
    caf::replies_to<open_device_request>::with<open_device_answer>,
    // From memory actors, for all devices: host memory that their processes may read, when it is committed.
    caf::reacts_to<add_memory>,
    // From memory actors. (delayed: until no device reads that memory)
    caf::replies_to<forget_memory>::with<retire_answer>>;

/// GPU TIER: a mover between host memory and memory of a device, which also copies to regions of that device.
using gpu_tier_actor = mover_actor::extend_with<device_watcher>::extend<
    // From the builder of the group, first: the tier whose objects it moves.
    caf::reacts_to<serve_tier_notice>,
    // From loads: what the tier holds, into a region of the same device. (delayed: until it is copied)
    caf::replies_to<device_load_request>::with<copy_answer>>;
struct serve_tier_notice {
  tier_actor tier;
};

/// SESSION: one conversation that has had a turn lately. Its group parks it when too many others have an actor.
using session_actor = caf::typed_actor<
    // From any connection of the group. A turn uses the session before it hashes and saves it before it is answered. (delayed:
    // until the group has seen it, which answers)
    caf::replies_to<use_session_request>::with<use_session_answer>,
    caf::replies_to<save_session_request>::with<save_session_answer>,
    // From the group: it gives everything back, and ends.
    caf::replies_to<park_session_request>::with<park_session_answer>>;

/// Asks for the actor of a session, which is spawned if the session is parked.
struct find_session_request {
  session_id id;
  session_actor ended; ///< the actor that was asked and has ended; may be empty
};
struct find_session_answer {
  error failure; ///< `gone`
  session_actor found;
};

/// GROUP: the spaces, leases, sessions and named lookups of a trust group, by id.
using group_actor = caf::typed_actor<
    caf::replies_to<open_space_request>::with<open_space_answer>,
    // From connections whose space has no room: the next idle ones, and to forget those without objects.
    caf::replies_to<idle_spaces_request>::with<idle_spaces_answer>,
    caf::replies_to<forget_spaces_request>::with<forget_spaces_answer>,
    // From the preparer: spaces with objects on disk, before they are opened.
    caf::replies_to<reserve_spaces_request>::with<reserve_spaces_answer>,
    // From the connection that took the lease, before the client gets the id.
    caf::reacts_to<add_lease_notice>,
    // From any connection of the group.
    caf::replies_to<use_lease_request>::with<use_lease_answer>,
    // From the connection of an operator: before it sends `revoke_request`; and to list leases.
    caf::replies_to<mark_revoked_request>::with<mark_revoked_answer>,
    caf::replies_to<leases_request>::with<leases_answer>,
    // From the connection of an operator: the group keeps a lease, and lets it go.
    caf::replies_to<pin_request>::with<pin_answer>, caf::replies_to<unpin_request>::with<unpin_answer>,
    // From the owner: the lease was released, or its connection ended.
    caf::reacts_to<end_lease_notice>, caf::reacts_to<end_owner_notice>,
    // From the connection of a lookup with an id: before it starts, and when it is answered or dropped.
    caf::replies_to<begin_lookup_request>::with<begin_lookup_answer>, caf::reacts_to<finish_lookup_notice>,
    // From any connection of the group. (delayed: until the lookup is answered or dropped, or the context
    // ends)
    caf::replies_to<await_lookup_request>::with<await_lookup_answer>,
    caf::replies_to<cancel_lookup_request>::with<cancel_lookup_answer>,
    // From any connection of the group. (the last two may be delayed: until sessions are parked)
    caf::replies_to<open_session_request>::with<open_session_answer>,
    caf::replies_to<find_session_request>::with<find_session_answer>,
    caf::replies_to<yield_holds_request>::with<yield_holds_answer>,
    caf::replies_to<close_session_request>::with<close_session_answer>,
    // From a session's actor, whose requests it answers. (`session_saved` delayed: until colder sessions hold less)
    caf::replies_to<session_used>::with<use_session_answer>,
    caf::replies_to<session_saved>::with<save_session_answer>,
    caf::replies_to<sessions_request>::with<sessions_answer>,
    // From a connection that is about to store or save a partial chunk.
    caf::replies_to<refer_tail_request>::with<refer_tail_answer>,
    // From a connection whose client keeps the logits of a prompt, or asks for them; before a clear.
    caf::replies_to<save_prompt_request>::with<save_prompt_answer>,
    caf::replies_to<find_prompt_request>::with<find_prompt_answer>,
    caf::replies_to<forget_prompts_request>::with<forget_prompts_answer>,
    // From checks, part by part: the leases, and what sessions take. From connections that are checked: the leases that they
    // own.
    caf::replies_to<check_group_request>::with<check_group_answer>,
    caf::replies_to<check_sessions_request>::with<check_sessions_answer>,
    caf::replies_to<check_owner_request>::with<check_answer_texts>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>, caf::replies_to<group_status_request>::with<group_report>>;

/// MEMORY: the size of a trust group's host memory, and its commitment.
using memory_actor = caf::typed_actor<
    // From the supervisor: the new size. (The result is logged.)
    caf::reacts_to<resize_memory>,
    // From its preparer: all memory is committed, or cannot be.
    caf::reacts_to<memory_committed>>;

/// PREPARER: a thread for blocking work. Reports to the actor that spawned it, and ends.
using preparer_actor = caf::typed_actor<
    // From itself: open the disk and recover its contents.
    caf::reacts_to<open_disk_notice>,
    // From itself: commit the next piece of memory. Between two pieces it can be ended.
    caf::reacts_to<commit_piece_notice>>;

/// CLEAR KEEPER: a thread for one clear that a group's volume cannot record now. Answers and ends.
using clear_keeper_actor = caf::typed_actor<
    // From the connection that clears. (delayed: until it is durable)
    caf::replies_to<remember_clear_request>::with<remember_clear_answer>>;

/// METRICS: the exposition scraped by Prometheus. Its server threads read counters and send no messages.
using metrics_actor = caf::typed_actor<
    // From actors with more to show after the start: a source to be read at each scrape.
    caf::reacts_to<add_source>>;

/// LISTENER: one listening socket.
using listener_actor = caf::typed_actor<
    // From the supervisor: stop accepting, and end.
    caf::reacts_to<drain_notice>>;

/// CONNECTION: one client's channel, its requests in flight and its resources.
using connection_actor = caf::typed_actor<
    // From the supervisor: no new requests; end when those in flight are answered.
    caf::reacts_to<drain_notice>,
    // From a later connection of the same process: it no longer reads anything of this one.
    caf::reacts_to<confirm_notice>,
    // From a listener or a newer observer: end, because as many silent connections or observers as allowed exist.
    caf::reacts_to<leave_notice>,
    // From the connection of an operator, after the group has marked the lease: one connection after the other.
    caf::replies_to<revoke_request>::with<revoke_answer>,
    // From checks: what its client has. (delayed: until the group has compared its leases)
    caf::replies_to<check_client_request>::with<check_client_answer>,
    // From itself and from others that have a function of it: work to do on its thread.
    caf::reacts_to<resume_notice>>;

/// SUPERVISOR: the wiring of all groups, and the order of shutdown.
using supervisor_actor = caf::typed_actor<
    // From the daemon, on a signal: stop accepting, let requests in flight finish for `shutdown_grace`, end.
    caf::reacts_to<drain_notice>,
    // From the daemon, after a reload.
    caf::reacts_to<policies_notice>, caf::reacts_to<quotas_notice>, caf::reacts_to<resize_groups>,
    caf::reacts_to<remote_budgets_notice>, caf::reacts_to<remote::all_credentials_notice>,
    // From the memory of each group, once.
    caf::reacts_to<memory_prepared>,
    // From the preparer of a group's disk: it is open, or why not.
    caf::reacts_to<disk_prepared>>;

} // namespace terrace::actors
