// Which objects something was done with lately: about the last 65,536 of them.
#pragma once

#include "base/object_key.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace terrace {

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

} // namespace terrace
