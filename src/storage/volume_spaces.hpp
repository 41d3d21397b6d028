// The numbers that a volume assigns to spaces, so that index records need not repeat fingerprints.
#pragma once

#include "base/ids.hpp"
#include "storage/index_record.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace terrace {

/// The spaces of one open volume: ids of this run of the daemon and the volume's persistent numbers, which
/// are never reused. Owned by one actor.
class volume_spaces {
 public:
  explicit volume_spaces(uint32_t next_number = 1) : next_number_(next_number) {}

  /// A space found by recovery.
  void add(space_id in, uint32_t number, const space_fingerprint& fingerprint) {
    known_[in] = {number, fingerprint};
    if (number >= next_number_)
      next_number_ = number + 1;
  }

  /// 0 if the space has no number yet.
  uint32_t number_of(space_id in) const {
    auto found = known_.find(in);
    return found == known_.end() ? 0 : found->second.number;
  }
  /// Assigns the next number.
  uint32_t define(space_id in, const space_fingerprint& fingerprint) {
    add(in, next_number_, fingerprint);
    return number_of(in);
  }
  std::optional<space_fingerprint> fingerprint_of(space_id in) const {
    auto found = known_.find(in);
    return found == known_.end() ? std::nullopt : std::optional(found->second.fingerprint);
  }

  /// The first records of every checkpoint.
  std::vector<index_record> records() const {
    std::vector<index_record> all;
    for (const auto& [in, space] : known_)
      all.push_back(space_record(space.number, space.fingerprint));
    return all;
  }

 private:
  struct numbered {
    uint32_t number = 0;
    space_fingerprint fingerprint{};
  };
  std::map<space_id, numbered> known_;
  uint32_t next_number_;
};

} // namespace terrace
