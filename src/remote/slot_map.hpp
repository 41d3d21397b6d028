// Which node of a cluster has a key: keys belong to 16,384 slots, and each slot to one primary.
//
//   slot_map map(ranges);                        // as a node tells them
//   map.owner(slot_of(key))                      // -> index of its primary in map.primaries(), or none
//   map.replicas_of(*map.owner(slot_of(key)))    // who else may have what that primary has
//
// A node that does not have a key's slot says who has: parse_redirection reads that. Pure.
#pragma once

#include "base/error.hpp"
#include "remote/store_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::remote {

inline constexpr uint32_t cluster_slots = 16'384;

/// The CRC16 of the key, or of what is between its first '{' and the next '}' if that is not empty.
uint16_t slot_of(std::string_view key);

/// "10.0.0.7:6379" or "[fd00::7]:6379".
std::string address_text(std::string_view host, uint64_t port);
/// Of a node that does not know its own host, ":6379", the same with the host of `asked`, the node that said so.
std::string completed_address(std::string_view told, std::string_view asked);

struct slot_range {
  static constexpr size_t replicas_max = 64; ///< those behind them are left out
  uint32_t first = 0, last = 0;
  std::string primary; ///< its address, possibly to be completed
  std::vector<std::string> replicas{};
};

class slot_map {
 public:
  static constexpr size_t replicas_max = 512; ///< of all primaries; those behind them are left out

  slot_map() = default;
  /// Slots that no range has belong to nobody. Precondition: no range ends beyond the slots.
  explicit slot_map(std::span<const slot_range> ranges);

  std::optional<size_t> owner(uint16_t slot) const;
  const std::vector<std::string>& primaries() const { return primaries_; }
  /// The replicas of the primary with this index, each once. No primary is among them.
  const std::vector<std::string>& replicas_of(size_t primary) const { return replicas_[primary]; }
  /// Slots of the primary with this index.
  uint32_t slots_of(size_t primary) const;
  /// Slots that belong to nobody.
  uint32_t uncovered() const;

 private:
  static constexpr uint16_t nobody = UINT16_MAX;
  uint32_t count(uint16_t owner) const;
  void take_replicas(std::span<const slot_range> ranges);

  std::vector<std::string> primaries_;
  std::vector<std::vector<std::string>> replicas_; ///< of each of them
  std::vector<uint16_t> owners_ = std::vector<uint16_t>(cluster_slots, nobody);
};

struct finished_command;

/// A guide has told this: who has the slots of a cluster, or where the primary of sentinels is.
struct guidance {
  slot_map slots{};
  store_address server{};
};
/// Reads the answer of a guide of this address, a node of the cluster or a sentinel, to `slots` or `primary`. Error: what it has
/// told is of no use, and what to do.
result<guidance> read_guidance(const store_address& of, const std::string& guide,
                               const finished_command& told);

struct redirection {
  bool once =
      false; ///< ASK: only this command, because the slot is on its way. Otherwise MOVED: the slot has another owner
  std::string address; ///< possibly to be completed

  friend bool operator==(const redirection&, const redirection&) = default;
};
/// nullopt: the error is none.
std::optional<redirection> parse_redirection(std::string_view said);

} // namespace terrace::remote
