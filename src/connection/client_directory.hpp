// The connected clients: their status and their bounds.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace terrace {

/// How a connection is counted.
enum class standing : uint8_t {
  silent,      ///< it has not said hello
  client,      ///< it is counted against connections_max
  observer,    ///< it only looks and administers
  quarantined, ///< its socket is closed, but its process may still read what it holds
  leaving,     ///< it must make room for another connection
};

/// Thread-safe. An entry exists from `add` until `remove`, which its connection calls at its end. `Client`: a
/// `client_state`, or derived from it.
///
/// Silent connections and observers keep no client out: they have bounds of their own. At a bound, the oldest
/// one of the user with the most of them must leave.
template <class Client>
class client_directory {
 public:
  using client_ptr = std::shared_ptr<Client>;

  static constexpr size_t observers_max = 64;

  /// Adds the client as silent.
  void add(const client_ptr& client) {
    std::lock_guard guard(mutex_);
    if (clients_.emplace(client->id, entry{client}).second)
      ++count_of(standing::silent);
  }

  void remove(connection_id id) {
    std::lock_guard guard(mutex_);
    auto found = clients_.find(id);
    if (found == clients_.end())
      return;
    change(found->second, standing::leaving);
    --count_of(standing::leaving);
    clients_.erase(found);
  }

  /// Called before a connection is added. Returns the silent connection that must leave for it, or null if
  /// there is room.
  client_ptr make_room_for_silent(size_t silent_max) {
    std::lock_guard guard(mutex_);
    return count_of(standing::silent) < silent_max ? nullptr : leaver(standing::silent);
  }

  /// The bound of clients and the number of trust groups. Half of the places are shared equally: each group
  /// always has its share of them. The other half goes to whoever comes first.
  struct client_bound {
    uint32_t connections_max = 0;
    size_t groups = 1;
    size_t share() const { return connections_max / (2 * groups); }
  };
  /// A process may have this many clients, and beyond that three times as many as there are free places. So a
  /// further process always finds some, however many clients others have opened.
  static constexpr size_t process_clients_min = 16;

  /// Makes a silent connection a client. Errors: `busy` if the limit of clients, of clients per process, or
  /// of quarantined connections is reached; the last only if the process has quarantined connections itself.
  result<void> admit_client(connection_id id, const client_bound& bound) {
    std::lock_guard guard(mutex_);
    auto found = clients_.find(id);
    if (found == clients_.end() || found->second.as == standing::leaving)
      return fail(errc::busy, "the connection made room for a newer one before it said hello");
    if (drains_)
      return fail(errc::busy,
                  "the daemon drains: it serves the clients that it has and admits no other ones");
    size_t clients = count_of(standing::client), quarantined = count_of(standing::quarantined);
    if (clients >= bound.connections_max)
      return fail(errc::busy, "the daemon has " + std::to_string(clients) +
                                  " connections, as many as connection.connections_max allows");
    if (size_t kept = kept_for_others(found->second.client->group, bound);
        clients + kept >= bound.connections_max)
      return fail(errc::busy, "the daemon has " + std::to_string(clients) + " connections and keeps " +
                                  std::to_string(kept) + " for other trust groups, as many together as " +
                                  "connection.connections_max allows");
    pid_t pid = found->second.client->pid;
    size_t own = clients_like(*found->second.client), left = bound.connections_max - clients;
    if (own >= process_clients_min && own >= 3 * left)
      return fail(errc::busy, "process " + std::to_string(pid) + " has " + std::to_string(own) +
                                  " connections, and the " + std::to_string(left) +
                                  " that connection.connections_max leaves are for other processes");
    if (quarantined >= bound.connections_max && has_quarantined(pid))
      return fail(errc::busy, "the daemon keeps what " + std::to_string(quarantined) +
                                  " closed connections may still be reading, as many as "
                                  "connection.connections_max allows, and some are of process " +
                                  std::to_string(pid) +
                                  ": expected their ids in `resumes` once it reads there no longer");
    change(found->second, standing::client);
    assert(count_of(standing::client) <= bound.connections_max);
    return {};
  }

  /// Makes a silent connection an observer. Returns the observer that must leave for it, or null if there is
  /// room.
  client_ptr admit_observer(connection_id id) {
    std::lock_guard guard(mutex_);
    auto found = clients_.find(id);
    if (found == clients_.end() || found->second.as == standing::leaving)
      return nullptr;
    auto leaves = count_of(standing::observer) < observers_max ? nullptr : leaver(standing::observer);
    change(found->second, standing::observer);
    assert(count_of(standing::observer) <= observers_max);
    return leaves;
  }

  /// Called when hello was received: admits a client or an observer.
  result<client_ptr> admit(connection_id id, bool observes, const client_bound& bound) {
    if (observes)
      return admit_observer(id);
    if (auto admitted = admit_client(id, bound); !admitted)
      return tl::unexpected(admitted.error());
    return nullptr;
  }

  /// From now on no client is admitted. `left` is called once, with the lock held, when the last client has
  /// left, or at once if there is none. Returns the number of clients. A second call changes nothing.
  size_t drain(std::function<void()> left) {
    std::lock_guard guard(mutex_);
    size_t clients = count_of(standing::client);
    if (drains_)
      return clients;
    drains_ = true;
    left_ = std::move(left);
    tell_if_left();
    return clients;
  }
  bool drains() const {
    std::lock_guard guard(mutex_);
    return drains_;
  }

  /// The socket is closed, but the entry stays.
  void quarantine(connection_id id) {
    std::lock_guard guard(mutex_);
    if (auto found = clients_.find(id); found != clients_.end())
      change(found->second, standing::quarantined);
  }

  /// The process no longer reads what the connection held, so the connection no longer counts as quarantined.
  void confirm(connection_id id, pid_t pid) {
    std::lock_guard guard(mutex_);
    auto found = clients_.find(id);
    if (found != clients_.end() && found->second.as == standing::quarantined && pid != 0 &&
        found->second.client->pid == pid)
      change(found->second, standing::leaving);
  }

  client_ptr find(connection_id id) const {
    std::lock_guard guard(mutex_);
    auto found = clients_.find(id);
    return found == clients_.end() ? nullptr : found->second.client;
  }

  std::vector<client_ptr> of_group(const std::string& group) const {
    auto list = all();
    std::erase_if(list, [&](const client_ptr& one) { return one->group != group; });
    return list;
  }

  std::vector<client_ptr> all() const {
    std::lock_guard guard(mutex_);
    std::vector<client_ptr> list;
    for (const auto& [id, one] : clients_)
      list.push_back(one.client);
    return list;
  }

  size_t size() const {
    std::lock_guard guard(mutex_);
    return clients_.size();
  }

  size_t count(standing as) const {
    std::lock_guard guard(mutex_);
    return counts_[static_cast<size_t>(as)];
  }

 private:
  struct entry {
    client_ptr client;
    standing as = standing::silent;
  };

  size_t& count_of(standing as) { return counts_[static_cast<size_t>(as)]; }

  /// Free places in the other groups' shares; 0 while the group has not used up its own share.
  size_t kept_for_others(const std::string& group, const client_bound& bound) const {
    auto own = clients_of_.find(group);
    if ((own == clients_of_.end() ? 0 : own->second) < bound.share())
      return 0;
    size_t kept = (bound.groups - 1) * bound.share();
    for (const auto& [name, clients] : clients_of_)
      if (name != group)
        kept -= std::min(clients, bound.share());
    return kept;
  }

  void change(entry& client, standing to) {
    assert(count_of(client.as) != 0);
    --count_of(client.as);
    ++count_of(to);
    if (client.as == standing::client)
      --clients_of_[client.client->group];
    if (to == standing::client)
      ++clients_of_[client.client->group];
    client.as = to;
    tell_if_left();
  }

  void tell_if_left() {
    if (drains_ && left_ && count_of(standing::client) == 0)
      std::exchange(left_, nullptr)();
  }

  /// Counts the clients of the same process, or of the same user if the process is in a PID namespace that is
  /// not visible.
  size_t clients_like(const Client& one) const {
    return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [&one](const auto& each) {
      const Client& other = *each.second.client;
      return each.second.as == standing::client && other.pid == one.pid &&
             (one.pid != 0 || other.uid == one.uid);
    }));
  }

  bool has_quarantined(pid_t pid) const {
    return std::any_of(clients_.begin(), clients_.end(), [pid](const auto& one) {
      return one.second.as == standing::quarantined && one.second.client->pid == pid;
    });
  }

  /// Returns the oldest connection of the user with the most of them, so that nobody's connections push out
  /// those of another user.
  client_ptr leaver(standing as) {
    std::map<uid_t, size_t> by_user;
    for (const auto& [id, one] : clients_)
      if (one.as == as)
        ++by_user[one.client->uid];
    auto most = std::max_element(by_user.begin(), by_user.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    for (auto& [id, one] : clients_)
      if (one.as == as && one.client->uid == most->first) {
        change(one, standing::leaving);
        return one.client;
      }
    return nullptr;
  }

  mutable std::mutex mutex_;
  std::map<connection_id, entry> clients_; ///< ids ascend with time
  size_t counts_[5] = {};
  std::map<std::string, size_t> clients_of_; ///< number of clients by trust group
  bool drains_ = false;
  std::function<void()> left_; ///< null: it has been called
};

} // namespace terrace
