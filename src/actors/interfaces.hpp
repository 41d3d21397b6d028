// The typed interfaces of the actors. A sentence per message says who sends it and what is returned; answers
// marked (delayed) may wait, and the text says what releases them.
#pragma once

#include "actors/connection/connection_messages.hpp"
#include "actors/disk/start_journal.hpp"
#include "actors/messages.hpp"
#include "actors/supervision/supervisor_messages.hpp"
#include "actors/tier/memory_messages.hpp"
#include "connection/group_messages.hpp"
#include "connection/lookup_messages.hpp"
#include "disk/disk_messages.hpp"
#include "runtime/io_messages.hpp"
#include "tier/policy_messages.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/write_through_messages.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>

// Defined in pure rooms.
#define TERRACE_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::type)
TERRACE_MESSAGE(release_notice)
TERRACE_MESSAGE(abandon_notice)
TERRACE_MESSAGE(detach_notice)
TERRACE_MESSAGE(probe_request)
TERRACE_MESSAGE(access_notice)
TERRACE_MESSAGE(probe_answer)
TERRACE_MESSAGE(acquire_request)
TERRACE_MESSAGE(acquire_answer)
TERRACE_MESSAGE(publish_request)
TERRACE_MESSAGE(publish_answer)
TERRACE_MESSAGE(await_request)
TERRACE_MESSAGE(await_answer)
TERRACE_MESSAGE(discard_notice)
TERRACE_MESSAGE(confirm_request)
TERRACE_MESSAGE(confirm_answer)
TERRACE_MESSAGE(clear_request)
TERRACE_MESSAGE(clear_answer)
TERRACE_MESSAGE(tier_status_request)
TERRACE_MESSAGE(tier_report)
TERRACE_MESSAGE(allocate_request)
TERRACE_MESSAGE(allocate_answer)
TERRACE_MESSAGE(free_notice)
TERRACE_MESSAGE(room_request)
TERRACE_MESSAGE(room_made)
TERRACE_MESSAGE(evictable_notice)
TERRACE_MESSAGE(grow_notice)
TERRACE_MESSAGE(retire_request)
TERRACE_MESSAGE(retire_answer)
TERRACE_MESSAGE(policy_notes)
TERRACE_MESSAGE(victim_request)
TERRACE_MESSAGE(victim_answer)
TERRACE_MESSAGE(write_credit_request)
TERRACE_MESSAGE(write_credit_answer)
TERRACE_MESSAGE(empty_spaces_request)
TERRACE_MESSAGE(empty_spaces_answer)
TERRACE_MESSAGE(forget_spaces_notice)
TERRACE_MESSAGE(usage_request)
TERRACE_MESSAGE(usage_answer)
TERRACE_MESSAGE(restored_request)
TERRACE_MESSAGE(restored_answer)
TERRACE_MESSAGE(notes_mark)
TERRACE_MESSAGE(inference_begin)
TERRACE_MESSAGE(inference_end)
TERRACE_MESSAGE(uses_notice)
TERRACE_MESSAGE(admit_request)
TERRACE_MESSAGE(admit_answer)
TERRACE_MESSAGE(set_policy_request)
TERRACE_MESSAGE(set_policy_answer)
TERRACE_MESSAGE(policies_request)
TERRACE_MESSAGE(policies_report)
TERRACE_MESSAGE(shadow_use)
TERRACE_MESSAGE(shadow_clear)
TERRACE_MESSAGE(shadow_request)
TERRACE_MESSAGE(shadow_report)
TERRACE_MESSAGE(copy_request)
TERRACE_MESSAGE(copy_answer)
TERRACE_MESSAGE(seal_request)
TERRACE_MESSAGE(seal_answer)
TERRACE_MESSAGE(check_request)
TERRACE_MESSAGE(check_answer)
TERRACE_MESSAGE(disk_request)
TERRACE_MESSAGE(disk_answer)
TERRACE_MESSAGE(read_request)
TERRACE_MESSAGE(write_request)
TERRACE_MESSAGE(move_answer)
TERRACE_MESSAGE(close_mover_request)
TERRACE_MESSAGE(close_mover_answer)
TERRACE_MESSAGE(register_memory)
TERRACE_MESSAGE(add_memory)
TERRACE_MESSAGE(forget_memory)
TERRACE_MESSAGE(journal_stalled)
TERRACE_MESSAGE(write_through_notice)
TERRACE_MESSAGE(finish_writes_request)
TERRACE_MESSAGE(finish_writes_answer)
TERRACE_MESSAGE(write_credit_notice)
TERRACE_MESSAGE(index_changes)
TERRACE_MESSAGE(image_request)
TERRACE_MESSAGE(image_answer)
TERRACE_MESSAGE(forget_request)
TERRACE_MESSAGE(forget_answer)
TERRACE_MESSAGE(close_journal_request)
TERRACE_MESSAGE(close_journal_answer)
TERRACE_MESSAGE(open_space_request)
TERRACE_MESSAGE(open_space_answer)
TERRACE_MESSAGE(idle_spaces_request)
TERRACE_MESSAGE(idle_spaces_answer)
TERRACE_MESSAGE(forget_spaces_request)
TERRACE_MESSAGE(forget_spaces_answer)
TERRACE_MESSAGE(add_lease_notice)
TERRACE_MESSAGE(reserve_spaces_request)
TERRACE_MESSAGE(reserve_spaces_answer)
TERRACE_MESSAGE(use_lease_request)
TERRACE_MESSAGE(use_lease_answer)
TERRACE_MESSAGE(end_lease_notice)
TERRACE_MESSAGE(end_owner_notice)
TERRACE_MESSAGE(begin_lookup_request)
TERRACE_MESSAGE(begin_lookup_answer)
TERRACE_MESSAGE(finish_lookup_notice)
TERRACE_MESSAGE(await_lookup_request)
TERRACE_MESSAGE(await_lookup_answer)
TERRACE_MESSAGE(cancel_lookup_request)
TERRACE_MESSAGE(cancel_lookup_answer)
TERRACE_MESSAGE(group_status_request)
TERRACE_MESSAGE(group_report)
#undef TERRACE_MESSAGE

// Defined in this room.
#define TERRACE_ACTORS_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::type)
TERRACE_ACTORS_MESSAGE(sweep_notice)
TERRACE_ACTORS_MESSAGE(clear_turn_notice)
TERRACE_ACTORS_MESSAGE(start_journal)
TERRACE_ACTORS_MESSAGE(resize_memory)
TERRACE_ACTORS_MESSAGE(memory_prepared)
TERRACE_ACTORS_MESSAGE(policies_notice)
TERRACE_ACTORS_MESSAGE(resize_groups)
TERRACE_ACTORS_MESSAGE(begin_notice)
TERRACE_ACTORS_MESSAGE(drain_notice)
TERRACE_ACTORS_MESSAGE(confirm_notice)
TERRACE_ACTORS_MESSAGE(leave_notice)
TERRACE_ACTORS_MESSAGE(resume_notice)
#undef TERRACE_ACTORS_MESSAGE

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
    // From the finder of wrong bytes in an object.
    caf::reacts_to<discard_notice>,
    // From transfers between tiers, after their destination is reserved: are the objects still valid?
    caf::replies_to<confirm_request>::with<confirm_answer>,
    // From clear requests. (delayed, in a durable tier: until what was cleared cannot come back)
    caf::replies_to<clear_request>::with<clear_answer>,
    // From itself: the next part of a clear.
    caf::reacts_to<clear_turn_notice>,
    // From its journal, while it takes a checkpoint.
    caf::replies_to<image_request>::with<image_answer>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>,
    // From its allocator, short of space; answered with `room_made`.
    caf::reacts_to<room_request>,
    // From the memory actor. (delayed: until the segments being removed are empty)
    caf::reacts_to<grow_notice>, caf::replies_to<retire_request>::with<retire_answer>,
    // From connections that open a space while the group has too many: of which spaces is there nothing? Then, those
    // that the group has forgotten.
    caf::replies_to<empty_spaces_request>::with<empty_spaces_answer>, caf::reacts_to<forget_spaces_notice>,
    // From status requests.
    caf::replies_to<tier_status_request>::with<tier_report>>;

/// ALLOCATOR: owns the free space of one arena and the queue of requests waiting for it.
using allocator_actor = caf::typed_actor<
    // From its tier. (delayed: until enough is free, nothing more can be evicted and `may_wait` is false, or
    // the context ends)
    caf::replies_to<allocate_request>::with<allocate_answer>,
    // From its tier: freed space.
    caf::reacts_to<free_notice>,
    // From its tier: the answer to each `room_request`; after a failed round, that something became evictable.
    caf::reacts_to<room_made>, caf::reacts_to<evictable_notice>,
    // From its tier. (delayed: until the segments being removed are empty)
    caf::reacts_to<grow_notice>, caf::replies_to<retire_request>::with<retire_answer>,
    // From its tier: answer waiting requests whose context has ended.
    caf::reacts_to<sweep_notice>, caf::replies_to<usage_request>::with<usage_answer>>;

/// POLICY: the eviction policies of all tiers of a trust group.
using policy_actor = caf::typed_actor<
    // From tiers, one batch per request.
    caf::reacts_to<policy_notes>,
    // From the preparer, before their tier serves.
    caf::replies_to<restored_request>::with<restored_answer>,
    // From tiers, after batches of notes: returned when all earlier notes have been applied (note_line.hpp).
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
    // From connections, for status.
    caf::replies_to<policies_request>::with<policies_report>>;

/// SHADOW: what other policies and capacities would have hit. No request waits for it.
using shadow_actor = caf::typed_actor<
    // From connections: the access to a chain (after checking `shadow_feed`), the end of an inference, and
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

/// WRITE-THROUGH: writes objects stored in a tier to the tier below.
using write_through_actor = caf::typed_actor<
    // From stores and loads, with a hold on the objects to write.
    caf::reacts_to<write_through_notice>,
    // From stores, before they take memory. (delayed: until this much more may wait for the tier below, or
    // the context ends)
    caf::replies_to<write_credit_request>::with<write_credit_answer>,
    // From credits that have ended.
    caf::reacts_to<write_credit_notice>,
    // From the supervisor. (delayed: until nothing waits to be written)
    caf::replies_to<finish_writes_request>::with<finish_writes_answer>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>>;

/// COPIER: a thread that copies and verifies bytes, in slices: groups and connections get equal shares of it
/// (transfer/copy_line.hpp).
using copier_actor = caf::typed_actor<caf::replies_to<copy_request>::with<copy_answer>,
                                      // Writes the header block in front of each payload, including the
                                      // checksum.
                                      caf::replies_to<seal_request>::with<seal_answer>,
                                      // Verifies header and checksum of objects read from disk.
                                      caf::replies_to<check_request>::with<check_answer>>;

/// GROUP: the spaces, leases and named lookups of a trust group, by id.
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
    // From the owner: the lease was released, or its connection ended.
    caf::reacts_to<end_lease_notice>, caf::reacts_to<end_owner_notice>,
    // From the connection of a lookup with an id: before it starts, and when it is answered or dropped.
    caf::replies_to<begin_lookup_request>::with<begin_lookup_answer>, caf::reacts_to<finish_lookup_notice>,
    // From any connection of the group. (delayed: until the lookup is answered or dropped, or the context
    // ends)
    caf::replies_to<await_lookup_request>::with<await_lookup_answer>,
    caf::replies_to<cancel_lookup_request>::with<cancel_lookup_answer>,
    // From a connection whose request ended early.
    caf::reacts_to<sweep_notice>, caf::replies_to<group_status_request>::with<group_report>>;

/// MEMORY: the size of a trust group's host memory, and its commitment.
using memory_actor = caf::typed_actor<
    // From the supervisor: the new size. (The result is logged.)
    caf::reacts_to<resize_memory>>;

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
    // From itself and from others that have a function of it: work to do on its thread.
    caf::reacts_to<resume_notice>>;

/// SUPERVISOR: the wiring of all groups, and the order of shutdown.
using supervisor_actor = caf::typed_actor<
    // From the daemon, on a signal: stop accepting, let requests in flight finish for `shutdown_grace`, end.
    caf::reacts_to<drain_notice>,
    // From the daemon, after a reload.
    caf::reacts_to<policies_notice>, caf::reacts_to<resize_groups>,
    // From the memory of each group, once.
    caf::reacts_to<memory_prepared>>;

} // namespace terrace::actors
