// Says whether a tier is available. The actor that moves its bytes sets it; any thread may read it.
#pragma once

#include <string>

namespace terrace {

class tier_availability {
 public:
  virtual ~tier_availability() = default;

  /// True if at least some objects can be read. Otherwise they count as misses; they may become readable again.
  virtual bool reads() const = 0;
  /// True if objects may be written: the tier is healthy, or it is time to retry.
  virtual bool writes() const = 0;
  /// Says why the tier is degraded; empty if it is not.
  virtual std::string reason() const = 0;
  /// Returns what an operator should know although the tier is in service; empty if nothing.
  virtual std::string notice() const { return {}; }
};

} // namespace terrace
