// Files that a device does not read itself, or not yet.
#pragma once

#include "base/named_file.hpp"

#include <cstdint>
#include <mutex>
#include <set>

namespace terrace {

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
