// The connected clients: what status shows of each, and how to reach its connection.
#pragma once

#include "actors/interfaces.hpp"
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

/// Thread-safe. An entry exists from `add` until `remove`, which its connection calls at its end.
class client_directory {
 public:
  void add(const client_ptr& client) {
    std::lock_guard guard(mutex_);
    clients_.emplace(client->id, client);
  }
  void remove(connection_id id) {
    std::lock_guard guard(mutex_);
    clients_.erase(id);
  }
  client_ptr find(connection_id id) const {
    std::lock_guard guard(mutex_);
    auto entry = clients_.find(id);
    return entry == clients_.end() ? nullptr : entry->second;
  }
  std::vector<client_ptr> of_group(const std::string& group) const {
    std::lock_guard guard(mutex_);
    std::vector<client_ptr> list;
    for (const auto& [id, client] : clients_)
      if (client->group == group)
        list.push_back(client);
    return list;
  }
  std::vector<client_ptr> all() const {
    std::lock_guard guard(mutex_);
    std::vector<client_ptr> list;
    for (const auto& [id, client] : clients_)
      list.push_back(client);
    return list;
  }
  size_t size() const {
    std::lock_guard guard(mutex_);
    return clients_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<connection_id, client_ptr> clients_;
};

} // namespace terrace::actors
