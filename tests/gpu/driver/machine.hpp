// The state of the simulated driver: devices, contexts, memory, handles, and the faults that a test asked
// for. One mutex guards all of it; bytes are copied and host functions run without it.
#pragma once

#include "driver/control_page.hpp"
#include "driver/entries.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace sim {

using namespace terrace::cuda;

constexpr uint64_t vmm_page_bytes = 2 << 20;

struct context {
  int device = 0;
  unsigned retains = 0;
  uint64_t unfinished = 0;       ///< operations of its streams
  status lost = status::success; ///< the sticky error that ended it
};

/// Addresses that our threads can use; unmapped with the last operation that needs them.
class view {
 public:
  view(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  ~view();
  view(const view&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

/// Physical memory of cuMemCreate: a memfd of its own.
struct physical {
  int descriptor = -1;
  uint64_t bytes = 0;
  bool shareable = false;
  int device = 0;
  ~physical();
};

/// A run of the address space that copies may name. Device addresses are mapped without access, so a program
/// that reads them on the host dies as with the real driver; the simulation finds the bytes at `data`.
struct range {
  enum kind_t { device, imported, registered, reserved };
  struct mapped_part {
    uint64_t bytes = 0;
    bool readable = false;
    bool writable = false;
    int device = 0; ///< the device that has the memory
  };

  kind_t kind = device;
  uint64_t base = 0;
  uint64_t bytes = 0;
  int owner = 0; ///< the device
  std::byte* data = nullptr;
  std::shared_ptr<view> memory;    ///< null for registered memory
  std::shared_ptr<view> addresses; ///< keeps `base` from being used otherwise
  bool writable = true;
  unsigned pins = 0;            ///< operations in flight
  uint64_t offset = 0;          ///< device: in the device's memfd
  control_slot* slot = nullptr; ///< device: its entry for importers; imported: the exporter's
  uint64_t slot_id = 0;
  std::shared_ptr<control_page> page;    ///< imported: the exporter's
  unsigned opens = 0;                    ///< imported
  std::map<uint64_t, mapped_part> parts; ///< reserved: by offset
};

struct operation {
  std::function<bool()> ready; ///< called with the lock; none: ready at once
  bool polls = false;          ///< `ready` depends on memory that others write
  std::function<status()> run; ///< called without the lock; an error ends the context
  std::function<void()> done;  ///< called with the lock
  std::vector<std::shared_ptr<range>> pins;
  bool copies = false;
  bool reads = false; ///< writes to host memory
};

struct stream {
  std::shared_ptr<context> home;
  std::deque<operation> queue;
  bool busy = false;
  bool destroyed = false; ///< ends when its queue is empty
  bool abandoned = false; ///< ends at once
};

struct event {
  std::shared_ptr<context> home;
  bool interprocess = false;
  bool imported = false;
  std::shared_ptr<event_words> words;
  control_slot* slot = nullptr;
  uint64_t slot_id = 0;
  std::shared_ptr<control_page> page; ///< imported
};

struct device {
  int descriptor = -1;
  uint64_t bytes = 0;
  std::map<uint64_t, uint64_t> used; ///< offset, size
};

struct fault {
  status code = status::success;
  unsigned skip = 0;
  unsigned count = 0;
};

struct machine {
  static machine& get();

  std::mutex mutex;
  std::condition_variable changed;

  int owner_pid;
  bool initialised = false;
  int version = 13000;
  std::vector<device> devices;
  std::vector<std::shared_ptr<context>> contexts;    ///< one for each device
  std::map<uint64_t, std::shared_ptr<range>> ranges; ///< by base
  std::map<stream_handle, std::shared_ptr<stream>> streams;
  std::map<event_handle, std::shared_ptr<event>> events;
  std::map<allocation_handle, std::shared_ptr<physical>> allocations;
  std::set<module_handle> modules;
  std::map<function_handle, std::pair<module_handle, std::string>> kernels;
  std::set<uint64_t> ended; ///< handles and addresses that were given back
  std::shared_ptr<control_page> page;
  uint64_t next_handle = 0x5100'0000'0000;

  std::map<std::string, fault> faults;
  std::set<std::string> hidden;
  std::set<device_attribute> lacking;
  bool peers = true; ///< devices can access each other's memory
  std::optional<status> execution_fault;
  bool fault_of_reads = false; ///< the fault waits for a copy into host memory
  /// A function of which `hold_count` calls, after `hold_skip` others, wait for a test at the pipe `hold_at`.
  std::string hold_in;
  unsigned hold_skip = 0, hold_count = 1;
  std::string hold_at;
  std::string hang_in;    ///< a function, or `copies`: the one that copies first
  unsigned hang_skip = 0; ///< calls before it
  unsigned hang_count = 1;
  unsigned hanging = 0;
  uint64_t releases = 0;
  bool held = false;
  std::map<std::string, uint64_t> calls;
  std::deque<std::string> violations; ///< the addresses of the texts do not change
  std::mt19937_64 random;

  // All below with the lock.

  void start(unsigned device_count, uint64_t device_bytes, uint64_t seed);
  void violation(std::string text);
  /// Reads faults for processes that no test controls from the file that TERRACE_SIMULATION names: "hang
  /// FUNCTION", "refuse FUNCTION" (with CUDA_ERROR_INVALID_VALUE), "halve cuFileRead", all once, with +N
  /// behind the name after N calls and with *N N times, "lose context", "lose reads", "lack read_only_pins",
  /// "lack stream_memory_ops" or "lack peers". In such a process a violation ends it.
  void follow_script();
  bool strict = false;
  template <class Handle>
  Handle new_handle() {
    next_handle += 64;
    return (Handle) next_handle; // a number or a pointer that nobody may follow
  }

  /// Returns the calling thread's context; null if it has none that lives.
  std::shared_ptr<context> current();
  /// Returns the range that has all of [address, address + bytes), or null; a violation is noted for bytes
  /// that are in no range.
  std::shared_ptr<range> find(uint64_t address, uint64_t bytes, bool writes, const char* what);
  std::shared_ptr<range> range_at(uint64_t base);
  /// These find objects of the current context; otherwise they return null and note a violation.
  std::shared_ptr<stream> find(stream_handle handle);
  std::shared_ptr<event> find(event_handle handle);
  /// Queues it behind the stream's other operations.
  void push(const std::shared_ptr<stream>& to, operation what);
  /// Removes a range; a use of it is a violation.
  void drop(std::shared_ptr<range> what, const char* how);
  size_t live() const;
};

/// The body of a stream's thread.
void run_stream(std::shared_ptr<stream> self);

enum class needs { nothing, initialised, context };

/// The begin of every entry: takes the lock, counts the call, and refuses it where the real driver would, or
/// where a test wants it to fail.
class entry {
 public:
  entry(const char* name, needs what);
  std::unique_lock<std::mutex> lock;
  status refused = status::success;
};

/// Set while a thread runs a host function, which may not call the driver.
extern thread_local bool in_host_function;
extern thread_local std::vector<context_handle> context_stack;

#define SIM_ENTER(name, what)                                                                                \
  auto& m = sim::machine::get();                                                                             \
  sim::entry entered(name, sim::needs::what);                                                                \
  if (entered.refused != status::success)                                                                    \
    return entered.refused;                                                                                  \
  (void) m

} // namespace sim
