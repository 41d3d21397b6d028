// What clients of a trust group have announced that they compute and store, by names that they chose, for those who follow.
#pragma once

#include "base/change_count.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/request_context.hpp"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

/// Safe on any thread. An announcement lives as long as its `owner`.
class announcements : public std::enable_shared_from_this<announcements> {
 public:
  static constexpr size_t ended_max = 4'096; ///< names that are kept after their end

  struct state {
    uint32_t chunks = 0; ///< that were announced
    uint32_t found = 0;  ///< leading ones that are present
    bool ended = false;  ///< no more of them will come
  };

  class owner {
   public:
    owner(owner&&) noexcept = default;
    owner& operator=(owner&&) = delete;
    ~owner() {
      if (in_)
        in_->end(name_);
    }
    /// So many leading chunks are present.
    void found(uint32_t chunks) { in_->found(name_, chunks); }

   private:
    friend class announcements;
    owner(std::shared_ptr<announcements> in, lookup_id name) : in_(std::move(in)), name_(name) {}
    std::shared_ptr<announcements> in_;
    lookup_id name_;
  };

  /// `bad_request` while the name is in use.
  result<owner> begin(const lookup_id& name, uint32_t chunks) {
    std::list<ended_name> place{{name, 0}};
    {
      std::lock_guard lock(mutex_);
      auto [at, is_new] = named_.try_emplace(name);
      if (!is_new && !at->second.ended)
        return fail(errc::bad_request,
                    "an announcement with this name is in progress; expected a unique name");
      place.front().number = ++begun_;
      at->second = {{chunks, 0, false}, begun_, std::move(place)};
      live_.fetch_add(1, std::memory_order_seq_cst);
    }
    changes_.add();
    return owner(shared_from_this(), name);
  }

  /// Nullopt: nobody has announced it, or it has been forgotten.
  std::optional<state> of(const lookup_id& name) const {
    std::lock_guard lock(mutex_);
    auto known = named_.find(name);
    return known == named_.end() ? std::nullopt : std::optional<state>(known->second);
  }

  /// Objects have become visible. Costs nothing while nothing is announced.
  void stored() {
    if (live_.load(std::memory_order_seq_cst) != 0)
      stores_.add();
  }

  change_count& changes() { return changes_; } ///< an announcement has begun, has got on, or has ended
  change_count& stores() { return stores_; }   ///< while anything is announced

 private:
  void found(const lookup_id& name, uint32_t chunks) {
    {
      std::lock_guard lock(mutex_);
      uint32_t& known = named_[name].found;
      if (chunks <= known)
        return;
      known = chunks;
    }
    changes_.add();
  }
  void end(const lookup_id& name) {
    {
      std::lock_guard lock(mutex_);
      entry& known = named_[name];
      known.ended = true;
      live_.fetch_sub(1, std::memory_order_seq_cst);
      ended_.splice(ended_.end(), known.place);
      forget_oldest();
    }
    changes_.add();
  }
  void forget_oldest() {
    while (ended_.size() > ended_max) {
      const auto [name, number] = ended_.front();
      ended_.pop_front();
      auto known = named_.find(name);
      if (known != named_.end() && known->second.number == number) // otherwise the name was used again
        named_.erase(known);
    }
    assert(ended_.size() <= ended_max);
  }

  struct ended_name {
    lookup_id name;
    uint64_t number = 0; ///< of the announcements, in the order in which they began
  };
  struct entry : state {
    uint64_t number = 0;
    std::list<ended_name> place{}; ///< its own among those that have ended: an end needs no memory
  };
  mutable std::mutex mutex_;
  std::map<lookup_id, entry> named_;
  std::list<ended_name> ended_; ///< the oldest first
  uint64_t begun_ = 0;
  std::atomic<size_t> live_{0};
  change_count changes_, stores_;
};

} // namespace terrace
