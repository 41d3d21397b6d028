// Notices about many objects, applied to a tier's objects in steps.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/residency.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace terrace {

/// The end of a lease on a million objects is one notice; other requests are served between its steps.
/// Notices are applied in order of arrival. Pure; used by one thread at a time.
class long_notices {
 public:
  static constexpr size_t step_objects = 1'024; ///< a notice of at most this many objects is applied at once

  void add(release_notice&& added) { line_.push_back({kind::release, std::move(added.ids)}); }
  void add(discard_notice&& added) { line_.push_back({kind::discard, std::move(added.ids), added.why}); }

  struct outcome {
    std::vector<extent> freed;
    uint64_t discarded = 0; ///< objects
    discard_reason why = discard_reason::damaged;
  };
  /// Precondition: not empty.
  outcome step(residency& objects);
  bool empty() const { return line_.empty(); }

 private:
  enum class kind : uint8_t { release, discard };
  struct notice {
    kind what;
    std::vector<object_id> ids;
    discard_reason why = discard_reason::damaged;
    size_t done = 0;
  };
  std::deque<notice> line_;
};

} // namespace terrace
