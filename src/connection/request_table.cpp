#include "connection/request_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

bool request_table::may_begin(protocol::kind verb, uint64_t bytes) const {
  return has_credit() || (protocol::gives_back(verb) && bytes <= protocol::giving_back_bytes_max &&
                          requests_.size() < most_.requests + protocol::giving_back_requests_max);
}

context_ptr request_table::begin(request_id id, protocol::kind verb, uint64_t bytes, clock::time_point now) {
  in_flight entry;
  entry.context = std::make_shared<request_context>();
  entry.context->work.begin();
  entry.context->connection = owner_;
  entry.context->request = id;
  entry.verb = verb;
  entry.arrived = now;
  entry.deadline = now + most_.deadline;
  entry.bytes = bytes;
  bytes_ += bytes;
  // `may_begin` bounds them; one more is refused at once
  assert(requests_.size() <= most_.requests + protocol::giving_back_requests_max);
  return requests_.emplace(id, std::move(entry)).first->second.context;
}

void request_table::charge(request_id id, uint64_t bytes, bool apart) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return;
  uint64_t covered = std::min(bytes, entry->second.expected);
  entry->second.expected -= covered;
  entry->second.bytes += bytes - covered;
  bytes_ += bytes - covered;
  if (!apart)
    return;
  entry->second.apart += bytes - covered;
  apart_ += bytes - covered;
}

void request_table::expect(request_id id, uint64_t bytes) {
  charge(id, bytes, true);
  if (auto entry = requests_.find(id); entry != requests_.end())
    entry->second.expected += bytes;
}

void request_table::settle(request_id id) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return;
  uint64_t rest = std::exchange(entry->second.expected, 0);
  entry->second.bytes -= rest;
  entry->second.apart -= rest;
  bytes_ -= rest;
  apart_ -= rest;
}

void request_table::took_objects(request_id id, uint64_t bytes) {
  auto entry = requests_.find(id);
  assert(entry != requests_.end() && entry->second.objects == 0);
  entry->second.objects = bytes;
  objects_ += bytes;
}

uint64_t request_table::return_objects(request_id id) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return 0;
  objects_ -= entry->second.objects;
  return std::exchange(entry->second.objects, 0);
}

std::vector<std::string> request_table::check() const {
  in_flight sum;
  for (const auto& [id, entry] : requests_) {
    sum.bytes += entry.bytes;
    sum.apart += entry.apart;
    sum.objects += entry.objects;
  }
  std::vector<std::string> all;
  auto compare = [&](const char* text, uint64_t counted, uint64_t kept) {
    if (counted != kept)
      all.push_back("requests in progress take " + std::to_string(counted) + " bytes " + text + ", and " +
                    std::to_string(kept) + " are kept");
  };
  compare("of credit", sum.bytes, bytes_);
  compare("that the trust group counts separately", sum.apart, apart_);
  compare("for objects", sum.objects, objects_);
  return all;
}

std::optional<request_table::clock::time_point>
request_table::set_deadline(request_id id, std::chrono::milliseconds after_arrival) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return std::nullopt;
  entry->second.deadline = entry->second.arrived + std::min(after_arrival, most_.deadline_max);
  return entry->second.deadline;
}

std::optional<request_table::clock::time_point>
request_table::set_part(request_id id, const context_ptr& part, clock::time_point now) {
  auto entry = requests_.find(id);
  if (entry == requests_.end() || !entry->second.context->live())
    return std::nullopt;
  assert(!part || !entry->second.part);
  entry->second.part = part;
  const auto left = std::max(entry->second.deadline - now, clock::duration(0));
  entry->second.part_until = now + left / 4 * 3;
  return entry->second.part_until;
}

std::optional<request_table::clock::duration> request_table::answer(request_id id, const context_ptr& context,
                                                                    clock::time_point now) {
  auto entry = requests_.find(id);
  if (entry == requests_.end() || entry->second.context != context || entry->second.answered)
    return std::nullopt;
  entry->second.answered = true;
  return now - entry->second.arrived;
}

void request_table::sent(request_id id) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return;
  bytes_ -= entry->second.bytes;
  apart_ -= entry->second.apart;
  objects_ -= entry->second.objects;
  requests_.erase(entry);
}

request_table::cancelled request_table::cancel(request_id id, errc why) {
  auto entry = requests_.find(id);
  if (entry == requests_.end() || entry->second.answered)
    return cancelled::unknown;
  return end(entry->second, why) ? cancelled::now : cancelled::before;
}

request_table::expiry request_table::expire(clock::time_point now) {
  expiry found;
  for (auto& [id, entry] : requests_) {
    if (entry.answered)
      continue;
    if (entry.part && entry.part_until > now)
      found.next = std::min(found.next, entry.part_until);
    else if (entry.part)
      found.any = end(*entry.part, errc::deadline) || found.any;
    if (entry.deadline > now)
      found.next = std::min(found.next, entry.deadline);
    else
      found.any = end(entry, errc::deadline) || found.any;
  }
  return found;
}

} // namespace terrace
