// The order of shutdown: listeners, connections, tiers below the first, then all other actors; each when
// nothing is left of the one before.
//
// Pure: the supervisor ends actors and reports when they have ended. Used by one thread at a time.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace terrace {

class shutdown_course {
 public:
  enum class phase : uint8_t {
    serving,
    closing_listeners, ///< nobody connects any more, so all connections are known
    draining,          ///< connections answer what is in flight, and end
    settling,          ///< tiers below the first write what is pending
    ending,            ///< all other actors end
    ended,
  };
  phase now() const { return now_; }
  bool serving() const { return now_ == phase::serving; }

  /// Begins with the listeners. Returns false if the shutdown has begun already.
  bool begin() {
    if (!serving())
      return false;
    now_ = phase::closing_listeners;
    return true;
  }

  /// The present phase waits for one more actor.
  void await() { ++awaited_; }
  /// Something that `in` waits for has ended, or written what it had. No effect once that phase is over.
  void arrived(phase in) {
    if (in != now_)
      return;
    assert(awaited_ != 0);
    --awaited_;
  }
  /// The time for this phase is up: it waits no longer. Returns false if it is over or has not begun.
  bool cut_short(phase which) {
    if (which != now_)
      return false;
    awaited_ = 0;
    return true;
  }

  /// Begins and returns the next phase; nullopt if the present one still waits, or if there is none.
  std::optional<phase> next() {
    if (serving() || now_ == phase::ended || awaited_ != 0)
      return std::nullopt;
    now_ = static_cast<phase>(static_cast<uint8_t>(now_) + 1);
    return now_;
  }

 private:
  phase now_ = phase::serving;
  size_t awaited_ = 0;
};

} // namespace terrace
