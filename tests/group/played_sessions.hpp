// Plays the actors of sessions on one thread: a session is taken from its group for a turn, and given back whenever the
// test wants.
#pragma once

#include "group/group_state.hpp"

#include <map>

namespace terrace::test {

/// Sessions of a table.
class played_table {
 public:
  explicit played_table(const session_bounds& most = {}) : table(most) {}

  session_table table;

  result<session_use> use(const session_id& id, uint64_t tokens) {
    session* own = find(id);
    if (own == nullptr)
      return fail(errc::gone, "no such session");
    auto report = own->use(tokens);
    if (!table.used(id, report.now))
      return fail(errc::gone, "it has ended");
    return std::move(report.found);
  }
  turn_outcome save(const session_id& id, uint64_t generation, session_state_ptr after) {
    session* own = find(id);
    if (own == nullptr)
      return turn_outcome::closed;
    auto report = own->save({generation, std::move(after), std::nullopt});
    if (!report)
      return turn_outcome::late;
    return table.saved(id, report->now) ? turn_outcome::saved : turn_outcome::closed;
  }
  turn_outcome save_end(const session_id& id, uint64_t generation, session_state_ptr after,
                        tail_reference tail) {
    session* own = find(id);
    if (own == nullptr)
      return turn_outcome::closed;
    auto report = own->save({generation, std::move(after), session_hold{}});
    if (!report)
      return turn_outcome::late;
    bool saved = table.saved_end(id, report->now, std::move(tail));
    return saved ? turn_outcome::saved : turn_outcome::closed;
  }
  void park(const session_id& id) {
    auto own = actors_.find(id);
    if (own == actors_.end())
      return;
    table.park(id, own->second);
    actors_.erase(own);
  }

 private:
  session* find(const session_id& id) {
    if (!table.has(id))
      return nullptr;
    auto own = actors_.find(id);
    if (own == actors_.end())
      own = actors_.emplace(id, table.take(id)).first;
    return &own->second;
  }

  std::map<session_id, session> actors_;
};

/// Sessions of a group. They are parked when the group asks for it.
class played_group {
 public:
  explicit played_group(group_state& group) : group_(group) {}

  use_session_answer use(const session_id& id, uint64_t tokens) {
    session* own = find(id);
    if (own == nullptr)
      return {group_.find_session(id), {}};
    auto report = own->use(tokens);
    report.id = id;
    return group_.answer(report);
  }
  save_session_answer save(const session_id& id, save_session_request request) {
    session* own = find(id);
    if (own == nullptr)
      return {{}, turn_outcome::closed, {}};
    auto report = own->save(std::move(request));
    if (!report)
      return {{}, turn_outcome::late, {}};
    report->id = id;
    group_state::cooling colder;
    auto answer = group_.answer(*report, colder);
    evict_coldest(colder);
    return answer;
  }
  uint64_t yield(const session_id& warm, uint64_t bytes) {
    group_state::cooling colder{.warm = warm, .wanted = bytes};
    evict_coldest(colder);
    return colder.freed;
  }
  mark_revoked_answer revoke(const lease_id& lease) {
    if (auto holder = group_.holder(lease))
      park(*holder);
    return group_.answer(mark_revoked_request{lease});
  }
  close_session_answer close(const session_id& id) {
    park(id);
    return group_.answer(close_session_request{id});
  }
  void end(connection_id owner) {
    group_.apply(end_owner_notice{owner});
    for (const session_id& id : group_.take_ended().actors)
      park(id);
  }
  void park(const session_id& id) {
    auto own = actors_.find(id);
    if (own == actors_.end())
      return;
    group_.park(id, std::move(own->second));
    actors_.erase(own);
  }

 private:
  session* find(const session_id& id) {
    if (group_.find_session(id).code != errc::ok)
      return nullptr;
    auto own = actors_.find(id);
    if (own == actors_.end())
      own = actors_.emplace(id, group_.take_session(id)).first;
    return &own->second;
  }
  void evict_coldest(group_state::cooling& colder) {
    while (auto first = group_.evict_coldest(colder))
      park(*first);
  }

  group_state& group_;
  std::map<session_id, session> actors_;
};

} // namespace terrace::test
