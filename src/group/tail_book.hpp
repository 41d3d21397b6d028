// Who refers to the partial chunks of a trust group: they belong to sessions and prompt entries alone.
#pragma once

#include "base/digest.hpp"
#include "index/space_registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace terrace {

/// Who refers to a tail.
enum class tail_referrer : uint8_t {
  session, ///< it is the tail of the last saved turn
  prompt,  ///< of a prompt entry
  store,   ///< a connection has stored it, for a turn or a prompt that is not saved yet
};
constexpr size_t tail_referrers = 3;

class tail_book;

struct tail_name {
  space_id in{};
  digest key;
  friend auto operator<=>(const tail_name&, const tail_name&) = default;
};

/// A tail to which somebody refers.
struct referred_tail {
  tail_book* book = nullptr;
  space_ptr in;
  std::array<uint64_t, tail_referrers> references{};
};

/// One reference to a tail; ends with the object. Move-only; the book outlives it.
class tail_reference {
 public:
  tail_reference() = default;
  tail_reference(tail_reference&& other) noexcept { swap(other); }
  tail_reference& operator=(tail_reference&& other) noexcept {
    tail_reference old(std::move(*this));
    swap(other);
    return *this;
  }
  ~tail_reference();

  explicit operator bool() const { return to_ != nullptr; }
  /// Precondition: there is a reference.
  const digest& key() const { return to_->first.key; }

 private:
  friend class tail_book;
  using named_tail = std::pair<const tail_name, referred_tail>;
  tail_reference(named_tail& to, tail_referrer by) : to_(&to), by_(by) {}
  void swap(tail_reference& other) noexcept {
    std::swap(to_, other.to_);
    std::swap(by_, other.by_);
  }

  named_tail* to_ =
      nullptr; ///< in the book, which keeps it in place; null: none. Every session has this object
  tail_referrer by_{};
};

/// A tail to which nobody refers any more.
struct unreferred_tail {
  space_ptr in;
  digest key;
};

/// Equal tails of equal prompts are one: forks share it, however many there are. Not thread-safe; owned by one actor.
class tail_book {
 public:
  static constexpr size_t unreferred_max =
      4'096; ///< that wait to be removed; what is beyond stays until it is evicted

  tail_book() = default;
  tail_book(const tail_book&) = delete;
  tail_book& operator=(const tail_book&) = delete;

  tail_reference refer(const space_ptr& in, const digest& key, tail_referrer by);

  bool referred(space_id in, const digest& key) const { return tails_.contains({in, key}); }
  size_t size() const { return tails_.size(); } ///< tails that somebody refers to
  uint64_t references(tail_referrer by) const { return references_[static_cast<size_t>(by)]; }
  /// To one tail.
  uint64_t references(space_id in, const digest& key, tail_referrer by) const {
    auto known = tails_.find({in, key});
    return known == tails_.end() ? 0 : known->second.references[static_cast<size_t>(by)];
  }

  /// One after the other, without those that are referred to again; `in` is null if there is none.
  unreferred_tail next_unreferred();

 private:
  friend class tail_reference;
  void end(tail_reference::named_tail& one, tail_referrer by);

  std::map<tail_name, referred_tail> tails_;
  std::array<uint64_t, tail_referrers> references_{};
  std::deque<unreferred_tail> unreferred_;
};

inline tail_reference::~tail_reference() {
  if (to_ != nullptr)
    to_->second.book->end(*to_, by_);
}

} // namespace terrace
