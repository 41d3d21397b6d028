// What a router for vLLM keeps of the events that it reads: the blocks of each medium, and as those of the medium "REMOTE" the ones
// of this locality.
#pragma once

#include <map>
#include <set>
#include <string>

namespace terrace::e2e {

class router_index {
 public:
  /// `maps`: events are maps, otherwise arrays.
  explicit router_index(bool maps) : maps_(maps) {}

  /// Takes a batch in msgpack. Returns what is wrong with it; empty: nothing.
  std::string take(const std::string& batch);

  size_t blocks(const std::string& medium) const {
    auto found = blocks_.find(medium);
    return found == blocks_.end() ? 0 : found->second.size();
  }
  bool has(const std::string& medium, const std::string& hash) const {
    auto found = blocks_.find(medium);
    return found != blocks_.end() && found->second.count(hash) != 0;
  }
  int begins = 0; ///< how often everything became void

 private:
  bool maps_;
  std::map<std::string, std::set<std::string>> blocks_; ///< a hash that is a number is kept as its digits
};

} // namespace terrace::e2e
