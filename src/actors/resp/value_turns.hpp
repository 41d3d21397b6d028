// Whose turn it is to replace a value that several clients want to replace: in the order in which they came, and only the next one
// is told. Without it each of them would ask host memory again after every replacement.
//
//   auto place = turns->join(key, [] { ... });   // called when it is this place's turn, unless it is at once
//   if (place->has_turn()) ...                   // the turn passes on when the place ends
#pragma once

#include "base/digest.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace terrace::resp {

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

} // namespace terrace::resp
