// A clear that a volume has not made durable, because the volume could not be reached.
#pragma once

#include "index/object_header.hpp"
#include "index/volume_id.hpp"

#include <cstdint>
#include <optional>

namespace terrace {

struct pending_clear {
  std::optional<space_fingerprint> space{}; ///< nullopt: everything is cleared
  /// The volume whose objects are cleared; zeros: any volume that the file turns out to contain.
  volume_id volume{};
  /// Objects of lower epochs are forgotten; 0: all objects that exist when the volume is opened.
  uint64_t epoch = 0;
  /// A volume that was created in the file after the clear, which therefore does not concern it; zeros: none.
  volume_id made_since{};

  bool concerns(const volume_id& opened) const {
    return (volume == volume_id{} || volume == opened) && made_since != opened;
  }
  friend bool operator==(const pending_clear&, const pending_clear&) = default;
};

} // namespace terrace
