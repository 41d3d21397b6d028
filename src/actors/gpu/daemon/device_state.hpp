// The state of a device's actor, for its parts: the process (device_process.cpp), regions
// (device_regions.cpp), arenas that it reads (device_arenas.cpp), copies (device_copies.cpp), files that it
// reads (device_files.cpp) and how (device_reads.cpp). Private to it.
#pragma once

#include "actors/gpu/daemon/device_actor.hpp"
#include "actors/gpu/daemon/device_slices.hpp"
#include "actors/gpu/daemon/pinned_arenas.hpp"
#include "actors/gpu/device_messages.hpp"
#include "actors/gpu/packet_socket.hpp"
#include "base/fair_queue.hpp"
#include "base/mapping.hpp"
#include "gpu/process/device_child.hpp"
#include "runtime/answer.hpp"
#include "runtime/io_port.hpp"
#include "runtime/task.hpp"
#include "transfer/device_health.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>

namespace terrace::actors {

/// The thread that starts a process sends this.
struct child_started {
  std::shared_ptr<result<gpu::device_child>> child;
};

/// Staging memory of a process, in slots.
struct device_staging {
  static constexpr size_t slots = 16;
  std::shared_ptr<unique_fd> descriptor;
  mapping memory;
  uint64_t slot_bytes = 0;
  std::byte* slot(size_t number) const { return memory.data() + number * slot_bytes; }
};

/// A copy in progress.
struct device_copy {
  copy_request request;
  gpu::device_slices slices;
  answer<copy_answer> reply;
  uint64_t bytes = 0; ///< bytes copied
  size_t in_flight = 0;
  size_t unsent = 0;  ///< slices that the device has not been given yet
  bool begun = false; ///< at least one slice was cut
  bool cut = false;   ///< the last slice was cut
  error failure;
};
using device_copy_ptr = std::shared_ptr<device_copy>;

/// A slice that passes through a slot.
struct slice_work {
  device_copy_ptr copy;
  gpu::device_slice slice;
  size_t slot = 0;
  uint64_t arena_use = 0;                  ///< a use of `arenas`; 0: none
  std::shared_ptr<device_staging> staging; ///< staging memory of the process that the slice is for
  error failure;                           ///< the device's error
  task_event answered;                     ///< set when the device has answered
  task<> progress;                         ///< last, because it refers to the others
};

/// A request to read files, in progress.
struct direct_read {
  direct_read_request request;
  answer<direct_read_answer> reply;
  std::vector<uint64_t> extent_bytes; ///< parallel to the objects
  uint64_t batch_bytes = 0;
  size_t begun = 0;        ///< objects begun
  std::vector<bool> there; ///< objects that are in the region
  size_t in_flight = 0;    ///< batches in flight
  bool stopped = false;    ///< no more batches are begun
  bool answered = false;
  error failure;
};
using direct_read_ptr = std::shared_ptr<direct_read>;

/// A batch of a read, in a slot of the device's memory. If it is not read within the deadline, the read goes
/// on without it. A read of a file cannot be called back, so the slot stays with the batch until the read is
/// over, and nobody looks at the bytes.
struct disk_work {
  direct_read_ptr read; ///< its read; null: the read goes on without this batch
  size_t begin = 0;     ///< the objects [begin, end)
  size_t end = 0;
  uint64_t slot = 0;
  uint64_t process = 0;
  error failure;
  uint64_t good = 0;   ///< one bit per object that is good
  uint64_t unread = 0; ///< one bit per object that the library could not read
  std::string why;     ///< why the first bad object is bad
  bool late = false;   ///< the batch was not read within the deadline
  task_event answered; ///< set when it is answered or late
  task_event over;     ///< set when a late batch is over
  task<> progress;     ///< last, because it refers to the others
};

/// The state of files that the process reads itself.
struct device_reads {
  enum class phase : uint8_t { unknown, opening, ready, refused };
  struct file {
    std::weak_ptr<named_file> file; ///< the file; its disk owns it and stays while the daemon runs
    phase now = phase::unknown;
  };

  std::shared_ptr<direct_reads> direct; ///< null: direct reads are switched off
  phase now = phase::unknown;
  device_memory_ptr slots; ///< the slots as copies name them
  std::vector<uint64_t> free_slots;
  size_t late = 0;                           ///< slots with late batches
  std::map<uint64_t, file> files;            ///< files by number; the process uses the same numbers
  fair_queue<direct_read_ptr> line{8 << 20}; ///< reads that are not completely begun
  std::list<disk_work> works;
  bool told = false;        ///< a failure of this process was reported
  std::string refusal;      ///< why it reads none, if that is refused
  std::string refused_file; ///< the last file that was refused, and why
};

/// A request to the process.
struct asked_of_process {
  std::function<void(const error& failure, const process_packet& answer)>
      then;                        ///< called with `gone` if the process is lost
  std::optional<uint64_t> watched; ///< tag in the detector
  std::function<void()> late;      ///< called if a request that may be late is late
};
/// Whether an answer of the process has a deadline.
enum class patience : uint8_t { until_deadline, endless };

struct mapped_region {
  uint64_t bytes = 0;
  bool peer = false;    ///< the region is memory of another device
  bool dropped = false; ///< the last owner has dropped it
  std::vector<caf::typed_response_promise<end_region_answer>> ends;
};

struct waiting_import {
  import_region_request request;
  answer<import_region_answer> reply;
};

struct device_state {
  enum class phase : uint8_t { absent, starting, ready, ending };

  const char* name = "device";
  device_arguments with;
  phase now = phase::absent;
  uint64_t process = 0; ///< number of the latest process
  gpu::device_child child;
  std::unique_ptr<packet_socket> socket;
  std::shared_ptr<device_staging> staging;
  std::vector<size_t> free_slots;
  bool receiving = false, sending = false, watching_exit = false; ///< operations in the ring
  bool ticking = false;
  stall_detector watch{ticks_of_patience};
  std::vector<uint64_t> free_tags;
  uint64_t tags = 0;
  uint64_t next_id = 1;
  std::unordered_map<uint64_t, asked_of_process> asked;
  std::map<uint64_t, mapped_region> regions;
  std::deque<waiting_import> imports;        ///< imports that wait for a process
  std::vector<device_watcher> watchers;      ///< one for each tier in its memory
  fair_queue<device_copy_ptr> line{8 << 20}; ///< copies that are not completely cut
  std::list<slice_work> slices;
  std::vector<keep_alive>
      quarantine; ///< holds on objects of other devices and of files that a lost process may still read
  device_reads reads;
  gpu::pinned_arenas arenas; ///< arenas that the process reads itself
};

using device_interface =
    device_actor::extend<caf::reacts_to<child_started>, caf::reacts_to<runtime::io_done>>;
using device_pointer = caf::stateful_actor<device_state, runtime::homed<device_interface::base>>*;

// ---- device_process.cpp ----

/// Sends `what` with the next id, and calls `then` once: with the answer, or with `gone`. `endless` is for
/// answers that nobody waits for. At the deadline the process is killed; or, if there is a `late`, that is
/// called and the answer may take as long as it does.
void ask_process(device_pointer self, process_packet what,
                 std::function<void(const error&, const process_packet&)> then,
                 patience with = patience::until_deadline, std::function<void()> late = nullptr);
/// Starts, ends or restarts the process as its regions need it.
void go_on(device_pointer self);
void on_watch(device_pointer self, const watch_device_notice& notice);
void on_child_started(device_pointer self, const child_started& notice);
void on_device_io(device_pointer self, const runtime::io_done& done);
error no_such_process(device_pointer self);
/// "device NAME", for logs and errors.
std::string subject(device_pointer self);

// ---- device_regions.cpp ----

caf::result<import_region_answer> on_import(device_pointer self, const import_region_request& request);
caf::result<share_region_answer> on_share(device_pointer self, const share_region_request& request);
void on_drop(device_pointer self, const drop_region_notice& notice);
caf::result<end_region_answer> on_end_region(device_pointer self, uint64_t region);
/// Asks the process, which is ready, to map the region.
void send_import(device_pointer self, waiting_import wanted);
void show_regions(device_pointer self);

// ---- device_arenas.cpp ----

void on_add_memory(device_pointer self, const add_memory& added);
caf::result<retire_answer> on_forget_memory(device_pointer self, const forget_memory& gone);
/// Makes the process map, pin or forget the next piece, unless it is busy with one.
void pin_more(device_pointer self);
/// Called when the process is lost: what it reads of other devices and of files is held until it has ended.
void quarantine_reads(device_pointer self);
/// Called when the process has ended.
void end_arenas(device_pointer self);

// ---- device_copies.cpp ----

caf::result<copy_answer> on_copy(device_pointer self, copy_request& request);
/// Starts slices while there are slots.
void start_slices(device_pointer self);
/// Fails the copies that wait for a slot.
void fail_line(device_pointer self, const error& why);

// ---- device_files.cpp ----

void begin_reads(device_pointer self);
/// Returns no error if the process can read everything. Files that it must open first are opened for later
/// requests.
error not_yet(device_pointer self, const direct_read_request& request);
/// From now on the process reads no disks.
void refuse_reads(device_pointer self, const std::string& why);
/// Called when a batch has become late, or when a late one is over.
void on_late_slots(device_pointer self, size_t late);
/// Called when the process is lost, before anything is answered. If the library was open there, this counts
/// against direct reads.
void blame_reads(device_pointer self);
/// Called when the process is lost or has ended: the next one begins anew.
void lose_reads(device_pointer self, const error& why);

// ---- device_reads.cpp ----

caf::result<direct_read_answer> on_direct_read(device_pointer self, direct_read_request& request);
/// Ends the reads that wait for a slot.
void stop_line(device_pointer self, const error& why);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::child_started)
