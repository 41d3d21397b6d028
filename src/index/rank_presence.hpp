// Tells which ranks of a space have connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Each open space has one, shared by its connections. Safe on any thread.
class rank_presence {
 public:
  explicit rank_presence(uint32_t ranks) : ranks_(ranks) {}

  /// A connection of a rank. The connection has left when its member is destroyed.
  class member {
   public:
    member(std::shared_ptr<rank_presence> ranks, uint32_t rank) : of_(std::move(ranks)), rank_(rank) {
      auto& all = of_->ranks_[rank_];
      all.connections.fetch_add(1, std::memory_order_relaxed);
      all.known.store(true, std::memory_order_relaxed);
    }
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() { of_->ranks_[rank_].connections.fetch_sub(1, std::memory_order_relaxed); }

   private:
    std::shared_ptr<rank_presence> of_;
    uint32_t rank_;
  };

  /// True if the rank had a connection since the space was opened, and the last one has ended. A rank that was never
  /// there may still come.
  bool has_left(uint32_t rank) const {
    const auto& all = ranks_[rank];
    return all.known.load(std::memory_order_relaxed) && all.connections.load(std::memory_order_relaxed) == 0;
  }

 private:
  struct connections_of_rank {
    std::atomic<uint32_t> connections = 0;
    std::atomic<bool> known = false;
  };
  std::vector<connections_of_rank> ranks_;
};

} // namespace terrace
