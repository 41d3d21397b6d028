#include "group/prompt_book.hpp"

#include <cassert>
#include <string>

namespace terrace {

void prompt_book::end(place at) {
  by_key_.erase({at->what->end.in->id, at->what->end.key});
  bytes_ -= at->what->bytes();
  line_.erase(at);
}

result<void> prompt_book::add(prompt_entry_ptr what, tail_reference tail) {
  uint64_t bytes = what->bytes();
  if (most_.prompts_max == 0)
    return fail(errc::no_space, "no prompts are kept");
  if (bytes > most_.bytes_max)
    return fail(errc::no_space, "the prompt's entry has " + std::to_string(bytes) +
                                    " bytes: expected at most " + std::to_string(most_.bytes_max) +
                                    " of all prompts, which follow from connection.group_bytes");
  name key{what->end.in->id, what->end.key};
  if (auto known = by_key_.find(key); known != by_key_.end())
    end(known->second);
  auto at = line_.insert(line_.end(), {std::move(what), std::move(tail)});
  by_key_.emplace(key, at);
  bytes_ += bytes;
  for (; line_.size() > most_.prompts_max || bytes_ > most_.bytes_max; ++evicted_)
    end(line_.begin());
  assert(!line_.empty());
  return {};
}

prompt_entry_ptr prompt_book::find(space_id in, const digest& key) {
  auto known = by_key_.find({in, key});
  if (known == by_key_.end())
    return nullptr;
  line_.splice(line_.end(), line_, known->second);
  return known->second->what;
}

size_t prompt_book::forget(space_id in) {
  size_t before = size();
  for (auto at = line_.begin(); at != line_.end();) {
    auto next = std::next(at);
    if (in == space_id{} || at->what->end.in->id == in)
      end(at);
    at = next;
  }
  return before - size();
}

std::vector<prompt_entry_ptr> prompt_book::list() const {
  std::vector<prompt_entry_ptr> all;
  all.reserve(line_.size());
  for (const kept& one : line_)
    all.push_back(one.what);
  return all;
}

} // namespace terrace
