// Whether a tier is available: set by the actor that moves its bytes, read on any thread.
#pragma once

#include <string>

namespace terrace {

class tier_availability {
 public:
  virtual ~tier_availability() = default;

  /// True if objects can be read, at least some. Otherwise they count as misses; they may become readable
  /// again.
  virtual bool reads() const = 0;
  /// True if objects may be written: the tier is healthy, or it is time to retry.
  virtual bool writes() const = 0;
  /// Why it is degraded; empty if it is not.
  virtual std::string reason() const = 0;
  /// What an operator should know although it is in service; empty if nothing.
  virtual std::string notice() const { return {}; }
};

} // namespace terrace
