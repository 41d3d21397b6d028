#include "cli/lookup_recorder.hpp"

#include <algorithm>

namespace terrace::cli {

namespace {

/// Ids of partial blocks, which nothing shares; others stay below.
constexpr uint64_t first_tail_id = uint64_t{1} << 48;

} // namespace

std::vector<uint64_t> lookup_recorder::path_to(uint64_t id) const {
  std::vector<uint64_t> path;
  for (; id != nothing; id = parents_[id])
    path.push_back(id);
  std::reverse(path.begin(), path.end());
  return path;
}

std::optional<trace_request> lookup_recorder::add(const client::recent_lookup& lookup, uint64_t now_ms) {
  if (space_ == 0)
    space_ = lookup.space;
  if (lookup.space != space_ || lookup.chunk_tokens == 0) {
    ++other_spaces_;
    return std::nullopt;
  }
  chunk_tokens_ = lookup.chunk_tokens;
  uint64_t before = nothing;
  if (lookup.first_token != 0) {
    auto known = lookup.parent ? ids_.find(*lookup.parent) : ids_.end();
    if (known == ids_.end()) {
      ++unknown_begins_;
      return std::nullopt;
    }
    before = known->second;
  }
  size_t more = static_cast<size_t>(std::count_if(lookup.chunks.begin(), lookup.chunks.end(),
                                                  [&](const digest& one) { return !ids_.contains(one); }));
  if (ids_.size() + more > chunks_max_) {
    full_ = true;
    return std::nullopt;
  }
  trace_request made;
  made.block_tokens = chunk_tokens_;
  made.hash_ids = path_to(before);
  for (const digest& chunk : lookup.chunks) {
    auto [place, is_new] = ids_.try_emplace(chunk, parents_.size());
    if (is_new)
      parents_.push_back(before);
    before = place->second;
    made.hash_ids.push_back(before);
  }
  uint64_t whole = made.hash_ids.size() * uint64_t{chunk_tokens_};
  uint64_t tokens = std::max(whole, std::min(lookup.prompt_tokens, whole + chunk_tokens_ - 1));
  if (tokens > whole)
    made.hash_ids.push_back(first_tail_id + tails_++);
  made.input_length = static_cast<uint32_t>(tokens);
  uint64_t at = now_ms - std::min<uint64_t>(now_ms, static_cast<uint64_t>(lookup.age.count()));
  begin_ms_ = begin_ms_.value_or(at);
  last_ms_ = std::max(last_ms_, at - std::min(at, *begin_ms_));
  made.timestamp_ms = last_ms_;
  if (made.hash_ids.empty())
    return std::nullopt; // an empty prompt
  return made;
}

} // namespace terrace::cli
