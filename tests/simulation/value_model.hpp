// What Redis clients of a simulated daemon were told, and the check that what they see agrees with it. A key has one value,
// which later ones replace; beside that, `daemon_model` knows which bytes were ever stored, and what was cleared.
#pragma once

#include "daemon_model.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace terrace::simulation {

class value_model {
 public:
  static constexpr uint32_t space = 1000; ///< of the values, in `daemon_model`

  explicit value_model(daemon_model& bytes) : bytes_(bytes) {}

  struct key {
    uint32_t group = 0;
    uint32_t number = 0;
    auto operator<=>(const key&) const = default;
  };
  /// A connection's commands take effect in their order.
  using connection = uint64_t;

  // ---- what clients ask for and are told ----

  /// A SET is about to be sent. Returns what the value is filled with (daemon_model::fill).
  daemon_model::version sets(const key& of, connection by, size_t bytes);
  /// Its last byte has been sent. Until then nobody may see the value.
  void sent(daemon_model::version which);
  void answered(daemon_model::version which, bool done);

  struct removal {
    key of;
    uint64_t asked = 0;
  };
  removal removes(const key& of, connection by);
  void removed(const removal& which, bool done);

  /// All requests have ended: they were answered, or their connections ended some time ago.
  void all_quiet();
  /// The daemon has lost its memory. What was replaced or removed lately may be back.
  void crashed();
  /// The daemon has ended in order, and was started again.
  void restarted();

  struct promises {
    bool all_found = false;          ///< nothing is evicted
    bool restart_keeps = false;      ///< all that was stored is on disk when the daemon has ended in order
    bool replaced_stay_away = false; ///< no device fails
  };
  void promise(const promises& made) { promised_ = made; }

  // ---- what must hold ----

  struct reading {
    key of;
    connection by = 0;
    uint64_t asked = 0;
    daemon_model::version expected = 0; ///< 0: it may be gone
  };
  /// The key is about to be asked for.
  reading reads(const key& of, connection by);
  /// Nothing: there was no value.
  void saw(const reading& which, std::optional<std::string_view> value);
  /// Some keys were counted, or removed: so many of them existed.
  void counted(const std::vector<reading>& keys, uint64_t existed);

 private:
  struct write {
    connection by = 0;
    uint64_t asked = 0;
    uint64_t ended = 0;              ///< 0: it may still take effect
    uint64_t done = 0;               ///< 0: nobody knows whether it has taken effect
    daemon_model::version value = 0; ///< 0: a removal
    size_t bytes = 0;
    bool sent = false;
  };
  struct history {
    std::vector<write> writes;
    daemon_model::version there = 0; ///< this value must be found
  };

  static bool precedes(const write& first, const write& second);
  bool may_be_seen(const history& of, const write& one, const reading& by) const;
  bool must_be_there(const reading& which);
  write* find(daemon_model::version which);
  void broke(const key& of, const std::string& what);

  daemon_model& bytes_;
  promises promised_;
  std::map<key, history> keys_;
  std::map<daemon_model::version, key> written_;
};

} // namespace terrace::simulation
