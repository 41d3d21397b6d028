// Compares the holds that a tier counts with those that their owners know.
#pragma once

#include "tier/objects/check_messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace terrace {

// Names the owners that keep holds from one request to the next.

/// Owners that can be asked. Any other owner that keeps holds from one request to the next gets a kind here
/// and a name in `reference_names`, and reports its holds where the check asks for them
/// (actors/check/check_actor.cpp). Holds beyond these belong to requests in progress.
enum class reference_kind : uint8_t {
  lease,   ///< a client's lease
  session, ///< a held session, between its turns, or a reader of objects that it held
  pin,     ///< an operator's pin
  reading, ///< objects whose places a client was given, so that it reads them there
};
constexpr std::array<const char*, 4> reference_names = {"leases", "sessions", "pins", "readings"};
constexpr size_t reference_kinds = reference_names.size();

/// The references to the objects of one tier. Pure; used by one thread at a time.
class reference_count {
 public:
  explicit reference_count(tier_kind tier) : tier_(tier) {}

  tier_kind tier() const { return tier_; }

  /// Adds one reference to each of these objects.
  void add(reference_kind kind, std::span<const object_place> places);

  /// Compares the tier's count of an object; call once per object. A difference is named if the object has not changed
  /// since the walk began and no reference had been added before. An owner with more references than there are holds is
  /// a difference. Holds beyond the references belong to requests; they are kept for `unexplained`.
  void compare(const held_object& object, std::vector<std::string>& differences);

  /// Returns at most `count_max` objects with references that were not compared, because the tier did not list them.
  std::vector<object_id> not_compared(size_t count_max) const;

  /// Objects that have not changed and have more holds than references: nobody has a reason to hold them if
  /// no request was in progress.
  const std::vector<std::string>& unexplained() const { return unexplained_; }

  uint64_t of(reference_kind kind) const { return sums_[static_cast<size_t>(kind)]; }
  /// The number of holds beyond the references.
  uint64_t of_requests() const { return of_requests_; }
  /// The bytes of the objects with references, each counted once, as in the ledger of leases. Sessions have a
  /// part of it.
  uint64_t leased_bytes() const { return leased_bytes_; }
  uint64_t session_bytes() const { return session_bytes_; } ///< the part of sessions alone

 private:
  struct references {
    std::array<uint32_t, reference_kinds> of{};
    uint32_t in(reference_kind kind) const { return of[static_cast<size_t>(kind)]; }
    uint32_t sum() const { return std::accumulate(of.begin(), of.end(), uint32_t{0}); }
  };
  std::string text_of(const held_object& object, const references& known) const;

  tier_kind tier_;
  std::unordered_map<object_id, references> known_; ///< references that are not compared yet
  std::array<uint64_t, reference_kinds> sums_{};
  uint64_t of_requests_ = 0;
  uint64_t leased_bytes_ = 0, session_bytes_ = 0;
  std::vector<std::string> unexplained_;
};

} // namespace terrace
