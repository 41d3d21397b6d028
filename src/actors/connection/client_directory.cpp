#include "actors/connection/client_directory.hpp"

#include <algorithm>

namespace terrace::actors {

void client_directory::change(entry& of, standing to) {
  --counts_[static_cast<size_t>(of.as)];
  ++counts_[static_cast<size_t>(to)];
  of.as = to;
}

void client_directory::add(const client_ptr& client) {
  std::lock_guard guard(mutex_);
  if (clients_.emplace(client->id, entry{client}).second)
    ++counts_[static_cast<size_t>(standing::silent)];
}

void client_directory::remove(connection_id id) {
  std::lock_guard guard(mutex_);
  auto found = clients_.find(id);
  if (found == clients_.end())
    return;
  --counts_[static_cast<size_t>(found->second.as)];
  clients_.erase(found);
}

/// The oldest of the user that has most of them, so that nobody's own connections push out another user's.
client_ptr client_directory::leaver(standing as) {
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

client_ptr client_directory::make_room_for_silent(size_t silent_max) {
  std::lock_guard guard(mutex_);
  return count_locked(standing::silent) < silent_max ? nullptr : leaver(standing::silent);
}

result<void> client_directory::admit_client(connection_id id, uint32_t connections_max) {
  std::lock_guard guard(mutex_);
  auto found = clients_.find(id);
  if (found == clients_.end() || found->second.as == standing::leaving)
    return fail(errc::busy, "the connection made room for a newer one before it said hello");
  if (count_locked(standing::client) >= connections_max)
    return fail(errc::busy, "the daemon has " + std::to_string(count_locked(standing::client)) +
                                " connections, as many as connection.connections_max allows");
  if (count_locked(standing::quarantined) >= connections_max)
    for (const auto& [other, one] : clients_)
      if (one.as == standing::quarantined && one.client->pid == found->second.client->pid)
        return fail(errc::busy, "the daemon keeps what " +
                                    std::to_string(count_locked(standing::quarantined)) +
                                    " closed connections may still be reading, as many as "
                                    "connection.connections_max allows, and some are of process " +
                                    std::to_string(one.client->pid) +
                                    ": expected their ids in `resumes` once it reads there no longer");
  change(found->second, standing::client);
  return {};
}

client_ptr client_directory::admit_observer(connection_id id) {
  std::lock_guard guard(mutex_);
  auto found = clients_.find(id);
  if (found == clients_.end() || found->second.as == standing::leaving)
    return nullptr;
  auto leaves = count_locked(standing::observer) < observers_max ? nullptr : leaver(standing::observer);
  change(found->second, standing::observer);
  return leaves;
}

void client_directory::quarantine(connection_id id) {
  std::lock_guard guard(mutex_);
  if (auto found = clients_.find(id); found != clients_.end())
    change(found->second, standing::quarantined);
}

client_ptr client_directory::find(connection_id id) const {
  std::lock_guard guard(mutex_);
  auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second.client;
}

std::vector<client_ptr> client_directory::of_group(const std::string& group) const {
  std::lock_guard guard(mutex_);
  std::vector<client_ptr> list;
  for (const auto& [id, one] : clients_)
    if (one.client->group == group)
      list.push_back(one.client);
  return list;
}

std::vector<client_ptr> client_directory::all() const {
  std::lock_guard guard(mutex_);
  std::vector<client_ptr> list;
  for (const auto& [id, one] : clients_)
    list.push_back(one.client);
  return list;
}

size_t client_directory::size() const {
  std::lock_guard guard(mutex_);
  return clients_.size();
}

size_t client_directory::count(standing as) const {
  std::lock_guard guard(mutex_);
  return count_locked(as);
}

} // namespace terrace::actors
