// Whether a device goes on to read disks itself, after what has failed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace terrace::gpu {

/// Processes are told apart by numbers, none of which is 0. What an earlier one tells late does not count. Safe on all threads.
class direct_record {
 public:
  /// Batches of a process that were not read: with as many held against it, something is wrong with reading in this way. Batches that
  /// were read clear them: a disk that fails once in a while is none of that.
  static constexpr size_t failures_max = 16;
  static constexpr uint64_t reads_per_failure = 64;
  /// Processes that ended, or had to be killed, while the library was open in them, or being opened; whether anything was read at that
  /// moment does not matter, because the library has threads and memory of its own there. With as many, the next process reads no disk
  /// as long as the daemon lives: each such end takes the regions of all clients with it.
  static constexpr size_t losses_max = 2;
  static constexpr uint64_t reads_per_loss = 4096;

  /// This process gets ready to read.
  void begin(uint64_t process) {
    std::lock_guard lock(mutex_);
    process_ = process;
    held_ = 0;
    lost_ = false;
  }
  /// A batch was read, and is as expected.
  void read(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_)
      return;
    held_ -= std::min<uint64_t>(held_, 1);
    if (losses_ != 0 && ++reads_ % reads_per_loss == 0)
      --losses_;
  }
  /// Returns how many are held against this process, with this one; 0: it is an earlier one.
  size_t failed(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_)
      return 0;
    held_ += reads_per_failure;
    return (held_ + reads_per_failure - 1) / reads_per_failure;
  }
  /// The process is lost. May be told more than once.
  void lost(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_ || std::exchange(lost_, true))
      return;
    ++losses_;
    reads_ = 0;
  }

  size_t losses() const {
    std::lock_guard lock(mutex_);
    return losses_;
  }
  bool given_up() const { return losses() >= losses_max; }

 private:
  mutable std::mutex mutex_;
  uint64_t process_ = 0; ///< the latest one
  uint64_t held_ = 0;    ///< against it: reads that would clear its failures
  bool lost_ = false;
  size_t losses_ = 0;
  uint64_t reads_ = 0; ///< since the last loss
};

/// The records of devices, by their names. Safe on all threads.
class direct_records {
 public:
  std::shared_ptr<direct_record> of(const std::string& device) {
    std::lock_guard lock(mutex_);
    auto& record = all_[device];
    if (!record)
      record = std::make_shared<direct_record>();
    return record;
  }
  /// The device is not known any more. What is held against it stays, for when it is known again.
  void leave(const std::string& device) {
    std::lock_guard lock(mutex_);
    if (auto found = all_.find(device); found != all_.end() && found->second->losses() == 0)
      all_.erase(found);
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<direct_record>> all_;
};

} // namespace terrace::gpu
