#include "cli/conversations.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace terrace::cli {

std::vector<size_t> conversations_of(const trace& requests) {
  std::unordered_map<std::string, size_t> by_name;
  std::unordered_map<uint64_t, size_t> by_tip; // last whole block of a conversation's latest prompt
  std::vector<size_t> found;
  found.reserve(requests.requests.size());
  size_t next = 0;
  for (const trace_request& request : requests.requests) {
    if (!request.session_id.empty()) {
      auto [at, is_new] = by_name.try_emplace(request.session_id, next);
      next += is_new;
      found.push_back(at->second);
      continue;
    }
    size_t whole = std::min(request.full_blocks(), request.hash_ids.size());
    size_t conversation = next;
    for (size_t i = whole; i > 0; --i) {
      auto tip = by_tip.find(request.hash_ids[i - 1]);
      if (tip == by_tip.end())
        continue;
      conversation = tip->second;
      by_tip.erase(tip);
      break;
    }
    next += conversation == next;
    if (whole > 0)
      by_tip[request.hash_ids[whole - 1]] = conversation;
    found.push_back(conversation);
  }
  return found;
}

std::vector<std::vector<size_t>> distribute(const trace& requests, size_t clients) {
  std::vector<size_t> conversation = conversations_of(requests);
  std::vector<size_t> blocks;
  for (size_t i = 0; i < conversation.size(); ++i) {
    blocks.resize(std::max(blocks.size(), conversation[i] + 1));
    blocks[conversation[i]] += requests.requests[i].hash_ids.size();
  }
  std::vector<size_t> load(clients), client_of(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t idlest = std::min_element(load.begin(), load.end()) - load.begin();
    client_of[i] = idlest;
    load[idlest] += blocks[i];
  }
  std::vector<std::vector<size_t>> shares(clients);
  for (size_t i = 0; i < conversation.size(); ++i)
    shares[client_of[conversation[i]]].push_back(i);
  return shares;
}

trace first_conversations(const trace& requests, size_t count) {
  std::vector<size_t> conversation = conversations_of(requests);
  trace kept;
  for (size_t i = 0; i < conversation.size(); ++i)
    if (conversation[i] < count)
      kept.requests.push_back(requests.requests[i]);
  return kept;
}

} // namespace terrace::cli
