// The epoch token of a space, or of the whole realm: a random number in the store that is part of the key of every object.
// Whoever replaces it clears the space, because nobody finds the former keys any more.
//
//   token      0: none is known yet
//   its bit 0  1: a clear has written it. 0: it was made because the store had none
//
// A store may lose a token, by an eviction or a restart. Then the next machine makes another one: what the space had in the
// store is lost, but what machines have themselves remains. A token that a clear has written makes every machine that sees it
// clear its own tiers as well.
//
// A store may also go back to a token that a clear has replaced: it restarts with an old copy, or a replica takes over that had
// not heard of the clear. Whoever remembers the token clears again.
//
// This class is what one machine knows of one token, and what it has to ask or say next:
//
//   while (!token.usable(now, told)) {
//     switch (token.next()) {
//       case epoch_token::step::read: ... GET; token.was_read(text, now), or token.was_absent()
//       case epoch_token::step::make: ... SET NX token.written(random); token.was_made()
//       case epoch_token::step::clear: ... SET token.written(random); token.was_cleared()
//
// Pure, one thread; time and randomness are passed in.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace terrace::remote {

class epoch_token {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// A token is read again after this time if the store does not tell when it changes.
  static constexpr std::chrono::seconds lasts{5};

  enum class step : uint8_t { read, make, clear };

  /// `told`: the store tells when it changes.
  bool usable(time_point now, bool told) const {
    return known_ && !owes_ && value_ != 0 && (told || now - since_ < lasts);
  }
  uint64_t value() const { return value_; }

  step next() const { return owes_ ? step::clear : absent_ ? step::make : step::read; }
  /// The text for `make` and `clear`.
  std::string written(uint64_t random);

  /// Returns true if another machine has cleared: the tiers of this one are to be cleared before the token is used.
  /// A text that is no token is replaced, and so is a token from before a clear.
  bool was_read(std::string_view text, time_point now);
  void was_absent() {
    absent_ = true;
    confirms_ = false;
  }
  void was_made() { absent_ = false; } ///< by this machine or another one: it is read next
  void
  was_cleared(); ///< by this machine: it is read next, because a store tells of keys that were read alone

  /// The store no longer tells. What is known lasts as if it had been read now.
  void is_not_told(time_point now) { since_ = now; }
  /// An earlier run of this machine has known it.
  void remember(uint64_t value) { value_ = value; }
  /// It may have changed.
  void ask_again() { known_ = absent_ = false; }
  /// This machine clears: nothing is used before the store has another token.
  void owe_clear() { owes_ = true; }
  bool owes_clear() const { return owes_; }

 private:
  /// `value` is the token now. What a clear has replaced is remembered.
  void becomes(uint64_t value);

  uint64_t value_ = 0, writing_ = 0;
  std::array<uint64_t, 8> former_{};  ///< the last values before this one; 0: none
  std::array<uint64_t, 8> cleared_{}; ///< the last values before a clear; 0: none
  bool known_ = false, absent_ = false, owes_ = false;
  bool confirms_ = false; ///< this machine has cleared, and what it reads next shows whether that held
  time_point since_{};
};

} // namespace terrace::remote
