// The spaces of one trust group, by number.
#pragma once

#include "base/ids.hpp"
#include "index/space_spec.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

// Tells which ranks of a space have connections.

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

// An observer of the bytes that the objects of each space take in a tier.

/// A `resident_table` calls it with physical bytes when an object is inserted, reserved ones included, and
/// when it is erased.
class space_meter {
 public:
  virtual ~space_meter() = default;
  virtual void took(space_id space, uint64_t bytes) = 0;
  virtual void gave_back(space_id space, uint64_t bytes) = 0;
};

class digest_memo;
class memo_pool;

/// Immutable except for its memo. All users of the space share it, on any thread. The space is open as long
/// as one of them holds it.
struct opened_space {
  space_id id{};
  space_spec spec;
  digest fingerprint;
  std::shared_ptr<rank_presence> ranks = std::make_shared<rank_presence>(spec.world_size);
  std::shared_ptr<digest_memo> memo = nullptr; ///< null: every prompt is hashed
};
using space_ptr = std::shared_ptr<const opened_space>;

/// A space that nobody has open.
struct idle_space {
  space_id id{};
  /// how often the space had been opened: if the number has changed, somebody may have stored in it
  uint64_t opened = 0;
};

/// A space that nobody has open, as status shows it.
struct closed_space {
  space_id id{};
  digest fingerprint;
  std::shared_ptr<const space_spec>
      spec; ///< null: nobody has opened it since the start, or there was no room for it
};

/// Numbers begin at 1 and are not reused. A space that is no longer open keeps its number until it is
/// forgotten, because its objects outlive the clients that stored them. Not thread-safe; owned by one actor.
class space_registry {
 public:
  struct options {
    size_t spaces_max = 65'536;
    bool isolated = false;                      ///< the trust group is isolated; see `space_spec::validate`
    std::shared_ptr<memo_pool> memos = nullptr; ///< null: spaces have no memo
    size_t spec_bytes_max =
        16 << 20; ///< of the specs that are kept so that a space can be opened by its number
  };

  space_registry() : space_registry(options{}) {}
  explicit space_registry(const options& o) : options_(o) {}

  /// Returns the same space for equal specs. Errors: those of `space_spec::validate`; `busy` at the limit:
  /// the caller may forget idle spaces and try again.
  result<std::shared_ptr<const opened_space>> open(const space_spec& spec);

  /// Opens a space that was opened before. Error: `not_found` if its fields are not known.
  result<std::shared_ptr<const opened_space>> open(space_id known);

  /// Returns the number of the space with this fingerprint, whether it is open or not. Error: `busy` at the limit.
  result<space_id> reserve(const digest& fingerprint);

  /// Returns up to `count_max` idle spaces by number. Each call continues behind the previous one, so that
  /// all have a turn.
  std::vector<idle_space> idle(size_t count_max);

  /// Forgets the spaces that were not opened since they were listed, and returns them. Their numbers mean
  /// nothing from then on: call it only for spaces that have no object in any tier.
  std::vector<space_id> forget(std::span<const idle_space> idle);

  /// Returns null if no open space has this number.
  std::shared_ptr<const opened_space> find(space_id id) const;

  /// Returns the open spaces with the lowest numbers.
  std::vector<std::shared_ptr<const opened_space>> list(size_t count_max) const;

  /// Returns the spaces with the lowest numbers that nobody has open.
  std::vector<closed_space> closed(size_t count_max) const;

  size_t size() const;
  /// The number of all known spaces, open or not; at most `spaces_max`.
  size_t known() const { return spaces_.size(); }

 private:
  struct entry {
    digest fingerprint;
    std::weak_ptr<const opened_space> open; ///< expired if nobody has the space open
    uint64_t opened = 0;
    std::shared_ptr<const space_spec> spec = nullptr; ///< kept when it is opened, if there is room
  };
  void keep(entry& known, const space_spec& spec);

  options options_;
  size_t spec_bytes_ = 0; ///< of all specs that are kept
  std::map<space_id, entry> spaces_;
  std::map<digest, space_id> by_fingerprint_;
  uint32_t last_ = 0; ///< the last number that was given
  space_id asked_{};  ///< the last space that `idle` looked at
};

} // namespace terrace
