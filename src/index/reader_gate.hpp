// Synchronizes one writer and many readers of an index. Readers never wait: while the writer is active or
// waiting, they are rejected and ask the owner of the index instead. The writer waits for active readers, so
// reads must be short.
//
// Unlike std::shared_mutex, continuously overlapping readers cannot starve the writer.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace {

class reader_gate {
 public:
  class reading;
  class writing;

  /// Safe on any thread. Converts to false if the reader was rejected.
  [[nodiscard]] reading try_read() const;

  /// Call only on the writer's thread, and not recursively.
  [[nodiscard]] writing write();

 private:
  static constexpr uint32_t writer = 1U << 31; ///< the other bits count readers

  bool enter() const {
    // The reader is counted before it checks, so either it sees the writer or the writer sees it.
    if ((state_.fetch_add(1, std::memory_order_acquire) & writer) == 0)
      return true;
    leave();
    return false;
  }
  void leave() const {
    if (state_.fetch_sub(1, std::memory_order_release) == (writer | 1))
      state_.notify_one();
  }

  mutable std::atomic<uint32_t> state_{0};
};

/// Read access, until the end of the scope.
class reader_gate::reading {
 public:
  explicit reading(const reader_gate* gate) : gate_(gate) {}
  reading(const reading&) = delete;
  reading& operator=(const reading&) = delete;
  ~reading() {
    if (gate_ != nullptr)
      gate_->leave();
  }
  explicit operator bool() const { return gate_ != nullptr; }

 private:
  const reader_gate* gate_;
};

class reader_gate::writing {
 public:
  explicit writing(std::atomic<uint32_t>& state) : state_(state) {
    uint32_t before = state_.fetch_or(writer, std::memory_order_acquire);
    for (before &= ~writer; before != 0; before = state_.load(std::memory_order_acquire) & ~writer)
      state_.wait(writer | before, std::memory_order_acquire);
  }
  writing(const writing&) = delete;
  writing& operator=(const writing&) = delete;
  ~writing() { state_.fetch_and(~writer, std::memory_order_release); }

 private:
  std::atomic<uint32_t>& state_;
};

inline reader_gate::reading reader_gate::try_read() const { return reading(enter() ? this : nullptr); }
inline reader_gate::writing reader_gate::write() { return writing(state_); }

} // namespace terrace
