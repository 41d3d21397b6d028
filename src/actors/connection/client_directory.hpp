// The connected clients: what status shows of each, how to reach its connection, and how many there may be.
#pragma once

#include "actors/interfaces.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "connection/client_state.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace terrace::actors {

/// A client, and how to reach its connection.
struct client_record : client_state {
  connection_actor actor;
};
using client_ptr = std::shared_ptr<client_record>;

/// How a connection is counted.
enum class standing : uint8_t {
  silent,      ///< it has not said hello
  client,      ///< counted against connections_max
  observer,    ///< it only asks for status and policies
  quarantined, ///< its socket is closed, but its process may be reading what it holds
  leaving,     ///< it has to make room for another
};

/// Thread-safe. An entry exists from `add` until `remove`, which its connection calls at its end.
///
/// Whoever says nothing, or only looks, keeps no client out: silent connections and observers have bounds of their
/// own, at which the oldest one of the user that has most of them must leave.
class client_directory {
 public:
  /// It is silent.
  void add(const client_ptr& client);
  void remove(connection_id id);

  /// Called before a connection is added. Returns the silent one that must leave for it; null: there is room.
  client_ptr make_room_for_silent(size_t silent_max);

  /// A silent connection becomes a client. Errors: `busy`, if there are `connections_max` clients, or as many
  /// quarantined connections, of which its process has some.
  result<void> admit_client(connection_id id, uint32_t connections_max);

  /// A silent connection becomes an observer. Returns the observer that must leave for it; null: there is room.
  client_ptr admit_observer(connection_id id);

  /// Its socket is closed, but it stays.
  void quarantine(connection_id id);

  client_ptr find(connection_id id) const;
  std::vector<client_ptr> of_group(const std::string& group) const;
  std::vector<client_ptr> all() const;
  size_t size() const;
  size_t count(standing as) const;

  static constexpr size_t observers_max = 64;

 private:
  struct entry {
    client_ptr client;
    standing as = standing::silent;
  };
  size_t count_locked(standing as) const { return counts_[static_cast<size_t>(as)]; }
  void change(entry& of, standing to);
  client_ptr leaver(standing as);

  mutable std::mutex mutex_;
  std::map<connection_id, entry> clients_; ///< ids ascend with time
  size_t counts_[5] = {};
};

} // namespace terrace::actors
