// Files that a device does not read itself, or not yet.
#pragma once

#include "base/object_key.hpp"
#include "base/unique_fd.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

namespace terrace {

// Which objects something was done with lately: about the last 65,536 of them.

/// Each object has one place, where the next one with the same place replaces it. Two keys are told apart by 64 bits of their names:
/// nothing but a guess may depend on it. Safe on all threads.
class recent_keys {
 public:
  static constexpr size_t places = 1 << 16;

  bool has(const object_key& key) const {
    auto name = to_entry_key(key);
    return names_[name.low % places].load(std::memory_order_relaxed) == name.high;
  }
  void add(const object_key& key) {
    auto name = to_entry_key(key);
    names_[name.low % places].store(name.high, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<uint64_t>[]> names_ = std::make_unique<std::atomic<uint64_t>[]>(places);
};

/// Each device has its own. Changed by its actor, asked by loads, before they ask anything else. Safe on all threads.
class unread_files {
 public:
  void add(const named_file& file) {
    std::lock_guard lock(mutex_);
    numbers_.insert(file.number);
  }
  void remove(const named_file& file) {
    std::lock_guard lock(mutex_);
    numbers_.erase(file.number);
  }
  bool has(const named_file& file) const {
    std::lock_guard lock(mutex_);
    return numbers_.contains(file.number);
  }

 private:
  mutable std::mutex mutex_;
  std::set<uint64_t> numbers_; ///< a few: a disk has one for each path
};

} // namespace terrace
