// Whether a tier can be used now: set by whoever moves its bytes, read by whoever would use it, on any thread.
#pragma once

#include <string>

namespace terrace::actors {

class tier_availability {
 public:
  virtual ~tier_availability() = default;

  /// Objects can be read, at least some. While they cannot, they count as not there; they may come back.
  virtual bool reads() const = 0;
  /// Objects may be written: all is well, or it is time to try again.
  virtual bool writes() const = 0;
  /// Why it is degraded; empty while it is not.
  virtual std::string reason() const = 0;
};

} // namespace terrace::actors
