#include "group/prompt_registry.hpp"

#include <cassert>
#include <string>

namespace terrace {

void prompt_registry::end(place at) {
  by_key_.erase({at->prompt->end.space->id, at->prompt->end.key});
  bytes_ -= at->prompt->bytes();
  line_.erase(at);
}

result<void> prompt_registry::add(prompt_entry_ptr prompt, tail_reference tail) {
  uint64_t bytes = prompt->bytes();
  if (most_.prompts_max == 0)
    return fail(errc::no_space, "no prompts are kept");
  if (bytes > most_.bytes_max)
    return fail(errc::no_space, "the prompt's entry has " + std::to_string(bytes) +
                                    " bytes: expected at most " + std::to_string(most_.bytes_max) +
                                    " of all prompts, which follow from connection.group_bytes");
  name key{prompt->end.space->id, prompt->end.key};
  if (auto known = by_key_.find(key); known != by_key_.end())
    end(known->second);
  auto at = line_.insert(line_.end(), {std::move(prompt), std::move(tail)});
  by_key_.emplace(key, at);
  bytes_ += bytes;
  for (; line_.size() > most_.prompts_max || bytes_ > most_.bytes_max; ++evicted_)
    end(line_.begin());
  assert(!line_.empty());
  return {};
}

prompt_entry_ptr prompt_registry::find(space_id space, const digest& key) {
  auto known = by_key_.find({space, key});
  if (known == by_key_.end())
    return nullptr;
  line_.splice(line_.end(), line_, known->second);
  return known->second->prompt;
}

size_t prompt_registry::forget(space_id space) {
  size_t before = size();
  for (auto at = line_.begin(); at != line_.end();) {
    auto next = std::next(at);
    if (space == space_id{} || at->prompt->end.space->id == space)
      end(at);
    at = next;
  }
  return before - size();
}

std::vector<prompt_entry_ptr> prompt_registry::list() const {
  std::vector<prompt_entry_ptr> all;
  all.reserve(line_.size());
  for (const kept& one : line_)
    all.push_back(one.prompt);
  return all;
}

} // namespace terrace
