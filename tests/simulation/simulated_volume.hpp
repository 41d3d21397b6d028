// A small disk tier on the simulated disk: the real journal, queue of operations, superblocks and recovery, with a
// first-fit allocator and an index. It stores, evicts, clears and takes checkpoints at random while the disk works, and
// after every step a crash is tried in a snapshot of the disk. What the model was told must be there.
//
//   simulated_volume volume{{.seed = 7}};
//   volume.run();
//   EXPECT_EQ(volume.model().broken(), none);
#pragma once

#include "simulated_io.hpp"
#include "volume_model.hpp"

#include "storage/disk/disk_queue.hpp"

#include <array>
#include <list>
#include <set>

namespace terrace::simulation {

/// An error in the sequence of a volume's operations, to see that the checks find it.
enum class planted_error : uint8_t {
  none,
  image_not_synced,      ///< a checkpoint's header is written before its image is durable
  header_not_synced,     ///< a checkpoint counts before its header is durable
  clear_not_synced,      ///< a clear is answered before the superblocks are durable
  published_unwritten,   ///< an object is published before it is written
  superblock_not_synced, ///< the volume is in use before its superblocks are durable
};

struct volume_run {
  uint64_t seed = 0;
  planted_error planted = planted_error::none;
  bool faults = false; ///< operations may also fail
  int lives = 3;
  int steps = 120; ///< of a life
};

class simulated_volume {
 public:
  explicit simulated_volume(const volume_run& how);

  /// Lives and dies; ends early if a promise is broken.
  void run();

  const volume_model& model() const { return model_; }
  uint64_t trace_hash() const { return events_.trace_hash(); }
  uint64_t crashes() const { return crashes_; }
  uint64_t intact() const { return intact_; } ///< objects that crashes left, all together

 private:
  using name = std::pair<uint32_t, uint64_t>; ///< space, chunk
  enum class area : uint8_t { other, superblock, header };
  struct volume_operation : runtime::operation {
    bool of_journal = false;
    uint64_t tag = 0; ///< of the queue
  };

  void open();
  int open_file();
  superblock write_new_superblocks(volume_device& device);
  void take_found(const recovered_volume& found, volume_device& device);
  void die();
  void try_crash();

  void draw_mix();
  void act();
  void store();
  void publish(const index_record& record);
  void stored(const index_record& record, bool good);
  void evict();
  void clear();
  void checkpoint_step();
  std::optional<uint64_t> free_place(uint64_t bytes) const;

  void pump();
  void submit(const journal_io& io);
  void submit(uint64_t tag, const disk_queue::transfer& what);
  void journal_completed(bool good, bool sync);
  bool skips(area synced) const;

  volume_run how_;
  seeded_random random_;
  scheduler events_;
  simulated_disk disk_;
  volume_model model_;
  std::optional<simulated_io> io_;
  int descriptor_ = -1;
  std::optional<index_journal> journal_;
  std::optional<disk_queue> queue_;
  std::list<volume_operation> operations_;
  uint64_t journal_bytes_ = 0; ///< of the write in progress; 0 for a sync
  area last_written_ = area::other;

  std::array<uint64_t, 5> mix_{}; ///< weights of what happens, drawn for each life
  std::map<name, index_record> index_;
  std::map<name, uint64_t> being_stored_; ///< generations
  std::set<uint64_t> abandoned_;          ///< generations of those that were cleared meanwhile
  std::map<uint64_t, uint64_t> extents_;  ///< offset, bytes
  std::set<uint32_t> told_;               ///< spaces that the journal knows
  std::map<uint32_t, uint64_t> floors_;   ///< of clears, durable or not
  std::set<uint64_t> doubtful_;           ///< generations of objects that a crash may lose
  uint64_t next_generation_ = 0;
  std::optional<name> image_from_;          ///< where the image continues
  std::map<uint64_t, index_record> imaged_; ///< what the checkpoint in progress will promise
  uint64_t crashes_ = 0;
  uint64_t intact_ = 0;
};

} // namespace terrace::simulation
