// A file system in memory on a device that fails as devices do. It has the calls that the daemon makes; each returns what
// the system call would, with -errno for errors.
//
// What a crash leaves is what Linux promises, and no more:
// - bytes and size of a file are durable after an fsync of the file that began after the write had returned, with O_DIRECT
//   too, because the device has a cache. A file system writes the rest when it likes, so some of it may be there;
// - names are durable after an fsync of their directory. Changes of one directory survive in their order;
// - after a failed fsync, what it should have written may be lost, although the next fsync succeeds.
//
// Deterministic: the seed decides which faults happen and what a crash leaves. It has no time: simulated_io.hpp delays and
// reorders. A crash can be tried in a snapshot.
#pragma once

#include "simulated_file.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace terrace::simulation {

/// How many of a million calls fail, at random.
struct disk_faults {
  uint32_t read = 0;        ///< EIO
  uint32_t write = 0;       ///< EIO; part of the bytes may be written
  uint32_t sync = 0;        ///< EIO
  uint32_t space = 0;       ///< ENOSPC, of calls that need space
  uint32_t cut = 0;         ///< reads and writes that transfer only a part
  uint32_t short_reads = 0; ///< reads alone; not drawn

  /// Swarm testing: each kind of fault is absent half of the time.
  static disk_faults draw(seeded_random& random);
  bool operator==(const disk_faults&) const = default;
};

/// What stat(2) tells of a file.
struct file_facts {
  uint64_t inode = 0;
  uint64_t bytes = 0;
  uint64_t allocated_bytes = 0;
  bool directory = false;
};

class simulated_disk {
 public:
  /// Descriptors of files begin here, above those of the kernel.
  static constexpr int first_descriptor = 1 << 20;

  /// Has one directory, "/".
  simulated_disk(uint64_t seed, uint64_t capacity_bytes);

  /// Flags of open(2): O_CREAT, O_EXCL, O_TRUNC, O_DIRECT and O_DIRECTORY count.
  int open(const std::string& path, int flags);
  int close(int descriptor);
  int set_direct(int descriptor, bool direct);
  int64_t read(int descriptor, uint64_t offset, std::span<std::byte> into);
  int64_t write(int descriptor, uint64_t offset, std::span<const std::byte> bytes);
  int fsync(int descriptor);
  int fallocate(int descriptor, uint64_t bytes); ///< from the start of the file
  int ftruncate(int descriptor, uint64_t bytes);
  int fstat(int descriptor, file_facts& facts) const;
  int stat(const std::string& path, file_facts& facts) const;
  int rename(const std::string& from, const std::string& to); ///< within a directory
  int unlink(const std::string& path);
  int mkdir(const std::string& path);
  uint64_t free_bytes() const;

  /// The two ends of an fsync that takes time: it covers what was written before it began.
  struct sync_begun {
    int descriptor = -1;
    uint64_t changes = 0;
  };
  sync_begun begin_sync(int descriptor) const;
  int end_sync(const sync_begun& begun);

  // ---- faults ----

  void set_faults(const disk_faults& faults) { faults_ = faults; }
  /// Every call fails with EIO until the device is back. What was not synced is lost in part, and the next fsync of each
  /// file tells.
  void vanish();
  void come_back() { away_ = false; }
  bool away() const { return away_; }
  /// Inverts a bit of a file on the medium.
  void flip_bit(const std::string& path, uint64_t bit);
  /// Inverts a bit of something that is written in some file.
  void rot();
  /// Makes a sector unreadable until it is written.
  void spoil(const std::string& path, uint64_t offset);

  // ---- the end ----

  /// A copy whose faults and crash the given seed decides.
  simulated_disk snapshot(uint64_t seed) const;

  /// The process ended while this write was in the kernel: any part of it may happen.
  void cut_off_write(int descriptor, uint64_t offset, std::span<const std::byte> bytes);
  /// The process has ended: its descriptors are closed, and all that it wrote can be read.
  void end_process();
  /// The power failed: the process has ended, and what was not durable may be lost. `how`: the seed decides by default.
  void crash();
  void crash(survival how);

 private:
  struct node {
    bool directory = false;
    simulated_file contents;
    uint64_t allocated = 0;
    std::set<uint64_t> unreadable; ///< sectors
    bool sync_failed = false;      ///< the next fsync reports it
  };
  struct opened {
    uint64_t inode = 0;
    bool direct = false;
  };
  /// A new meaning of a name (0: none), with the name that the file had until then, if it was renamed.
  struct name_change {
    std::string name;
    uint64_t inode = 0;
    std::string former;
  };
  using names = std::map<std::string, uint64_t>;

  const node* find(int descriptor) const;
  node* find(int descriptor);
  bool refuses_direct(int descriptor, uint64_t offset, const std::byte* memory, uint64_t bytes) const;
  uint64_t without_rest(uint64_t bytes, uint32_t cut);
  int look_up_parent(const std::string& path) const;
  int make_node(const std::string& path, bool directory);
  void change_name(name_change change);
  static void apply(names& to, const name_change& change);
  void sync_names(const std::string& directory, uint64_t changes);
  void crash_names(survival how);
  uint64_t count_changes(const std::string& directory) const;
  std::string name_of(uint64_t inode) const;
  bool reserve(node& file, uint64_t end);
  void release_unused();

  seeded_random random_;
  uint64_t capacity_;
  disk_faults faults_;
  bool away_ = false;
  uint64_t last_inode_ = 1;
  int last_descriptor_ = first_descriptor - 1;
  std::map<uint64_t, node> nodes_;
  std::map<int, opened> descriptors_;
  names names_;
  names durable_names_;
  std::map<std::string, std::vector<name_change>> unsynced_names_; ///< by directory
  std::map<std::string, uint64_t> synced_names_;                   ///< changes no longer in `unsynced_names_`
};

} // namespace terrace::simulation
