// The page by which processes know of each other's exports: the exporter owns it and importers map it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <sys/types.h>

namespace sim {

/// How often an event was recorded, and which record is done.
struct event_words {
  std::atomic<uint32_t> recorded{0};
  std::atomic<uint32_t> completed{0};
};

/// An exported allocation or event.
struct control_slot {
  std::atomic<uint64_t> id{0}; ///< 0: free
  std::atomic<int32_t> importers[8]{};
  event_words words;
};

/// The 64 bytes of an IPC handle in the simulation.
struct export_record {
  uint32_t magic = 0;
  int32_t process = 0;
  int32_t page = 0;   ///< the exporter's descriptor
  int32_t memory = 0; ///< likewise; -1 for an event
  uint32_t slot = 0;
  uint32_t device = 0;
  uint64_t id = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
constexpr uint32_t export_magic = 0x53494d31;
static_assert(sizeof(export_record) <= 64);

class control_page {
 public:
  static constexpr uint32_t slots = 256;

  static std::shared_ptr<control_page> make();
  /// Opens another process's page; null if the process has ended.
  static std::shared_ptr<control_page> open(pid_t process, int descriptor);
  ~control_page();

  int descriptor() const { return descriptor_; }
  control_slot& slot(uint32_t i) const { return slots_[i]; }
  uint32_t index_of(const control_slot* slot) const { return static_cast<uint32_t>(slot - slots_); }
  /// Takes a free slot under a new id; null if all are taken.
  control_slot* take(uint64_t id) const;

 private:
  control_page(int descriptor, control_slot* all) : descriptor_(descriptor), slots_(all) {}
  int descriptor_;
  control_slot* slots_;
};

/// Notes this process as an importer; false when there are too many.
bool add_importer(control_slot& slot);
void remove_importer(control_slot& slot);
/// Returns the number of living processes that have it open.
int importers(const control_slot& slot);

/// Opens a descriptor of another process; -1 when it is gone.
int open_descriptor_of(pid_t process, int descriptor, bool writable);

} // namespace sim
