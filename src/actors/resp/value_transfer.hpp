// Values of Redis clients in the tiers of their trust group: finds them, brings them into host memory,
// replaces and removes them.
//
// A key has one value, which a later one replaces, so a store is more than a publication: earlier values in
// all tiers are removed first, and nothing in progress may bring them back. Only the request that has
// reserved the key in host memory writes it; see `reserve_values`.
#pragma once

#include "actors/group/trust_group.hpp"
#include "base/digest.hpp"
#include "index/sha256.hpp"
#include "index/space_spec.hpp"
#include "runtime/task.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_hold.hpp"

#include <caf/actor.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace::resp {

// Whose turn it is to replace a value that several clients want to replace: in the order in which they came, and only the next one
// is told. Without it each of them would ask host memory again after every replacement.
//
//   auto place = turns->join(key, [] { ... });   // called when it is this place's turn, unless it is at once
//   if (place->has_turn()) ...                   // the turn passes on when the place ends

/// Safe on any thread. It is no lock: host memory decides who writes.
class value_turns : public std::enable_shared_from_this<value_turns> {
  struct waiter {
    std::function<void()> told;
  };
  using line = std::list<waiter>;

 public:
  class place {
   public:
    place(std::shared_ptr<value_turns> of, const digest& key, line::iterator at)
        : of_(std::move(of)), key_(key), at_(at) {}
    ~place() { of_->leave(key_, at_); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    bool has_turn() const {
      std::lock_guard guard(of_->mutex_);
      return of_->lines_.find(key_)->second.begin() == at_;
    }

   private:
    std::shared_ptr<value_turns> of_;
    digest key_;
    line::iterator at_;
  };

  /// `told` is called at most once, on any thread, under a mutex of this object.
  std::unique_ptr<place> join(const digest& key, std::function<void()> told) {
    std::lock_guard guard(mutex_);
    line& all = lines_[key];
    lines_now_.store(lines_.size(), std::memory_order_relaxed);
    auto at = all.insert(all.end(), waiter{std::move(told)});
    return std::make_unique<place>(shared_from_this(), key, at);
  }

  /// True if somebody has, or waits for, the turn of the key.
  bool waited_for(const digest& key) const {
    if (lines_now_.load(std::memory_order_relaxed) == 0)
      return false;
    std::lock_guard guard(mutex_);
    return lines_.contains(key);
  }

 private:
  struct first_word {
    size_t operator()(const digest& key) const { // a SHA-256
      size_t word = 0;
      std::memcpy(&word, key.bytes.data(), sizeof word);
      return word;
    }
  };

  void leave(const digest& key, line::iterator at) {
    std::lock_guard guard(mutex_);
    auto all = lines_.find(key);
    bool had_turn = all->second.begin() == at;
    all->second.erase(at);
    if (all->second.empty())
      lines_.erase(all);
    else if (had_turn)
      all->second.front().told();
    lines_now_.store(lines_.size(), std::memory_order_relaxed);
  }

  mutable std::mutex mutex_;
  std::unordered_map<digest, line, first_word> lines_;
  std::atomic<size_t> lines_now_{0};
};

// The space of the values of Redis clients, and the names of values in it.

constexpr std::string_view reserved_layout = "terrace.resp";
constexpr uint64_t value_bytes_most = space_spec::object_bytes_max / 2; ///< as in Redis: 512 MiB

/// Returns the spec; there is one such space per trust group. Its objects have sizes of their own, which no
/// client of another protocol knows.
inline space_spec value_space() {
  space_spec spec;
  spec.model = "resp";
  spec.dtype = "bytes";
  spec.layout = reserved_layout;
  spec.chunk_tokens = 1;
  spec.hash_block_tokens = 1;
  spec.algorithm = hash_algorithm::sha256;
  spec.pools = {{.name = "value", .object_bytes = value_bytes_most}};
  return spec;
}

/// True for a space that only this protocol may open: a request from another protocol would name wrong sizes.
inline bool is_value_space(const space_spec& spec) { return spec.layout == reserved_layout; }

/// Returns the SHA-256 of the key, whatever its length. No two keys with one digest are known, so the key is
/// not stored with the value.
inline digest name_of(sha256& with, std::string_view key) {
  with.begin();
  with.update(key);
  return with.finish();
}

} // namespace terrace::resp

namespace terrace::actors {

/// The subject of these functions: some keys of one client.
struct value_subject {
  group_ptr group;
  space_ptr space;
  batch_ptr objects; ///< with the sizes of the values, if they are stored
  context_ptr context;
};

/// The places where values were found and are held. Each of `holds` is parallel to the objects.
struct found_values {
  tier_holds holds; ///< fastest tier first

  /// Returns the fastest tier that has the value; null if none does.
  const tier_hold* of(size_t value) const {
    for (const tier_hold& one : holds)
      if (one.held->places()[value].present())
        return &one;
    return nullptr;
  }
};

/// A value in host memory, as long as `owner` exists.
struct held_value {
  object_place place;
  keep_alive owner;
};

/// Space for values of which no tier has an earlier one.
struct reserved_values {
  acquire_answer space; ///< every object is `reserved`
  struct credit_of {
    write_through_actor to;
    credit_ptr credit;
  };
  std::vector<credit_of> credits;
  std::unique_ptr<resp::value_turns::place> turn; ///< if others want to replace the same value
};

} // namespace terrace::actors
