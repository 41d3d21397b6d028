#include "cli/replay_counts.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::cli {

uint64_t replay_counts::all_hit_tokens() const {
  return std::accumulate(hit_tokens.begin(), hit_tokens.end(), uint64_t{0});
}

uint64_t replay_counts::all_loaded_bytes() const {
  return std::accumulate(loaded_bytes.begin(), loaded_bytes.end(), uint64_t{0});
}

double replay_counts::hit_ratio() const {
  return input_tokens == 0 ? 0 : static_cast<double>(all_hit_tokens()) / static_cast<double>(input_tokens);
}

void replay_counts::note_error(const error& e) {
  errors_of_code& of_code = errors[e.code];
  if (of_code.count++ == 0)
    of_code.first_text = e.text;
}

void replay_counts::merge(const prefetched& done) {
  ahead.requests += done.requests;
  ahead.expected += done.expected;
  ahead.delivered += done.delivered;
  ahead.failed += done.failed;
}

void replay_counts::merge(const replay_counts& other) {
  merge(other.ahead);
  requests += other.requests;
  input_tokens += other.input_tokens;
  chunk_tokens += other.chunk_tokens;
  sent_tokens += other.sent_tokens;
  for (size_t i = 0; i < tier_count; ++i) {
    hit_tokens[i] += other.hit_tokens[i];
    loaded_bytes[i] += other.loaded_bytes[i];
    wait[i].merge(other.wait[i]);
  }
  stored_bytes += other.stored_bytes;
  stored_chunks += other.stored_chunks;
  present_chunks += other.present_chunks;
  recompute_chunks += other.recompute_chunks;
  undelivered_chunks += other.undelivered_chunks;
  wrong_bytes += other.wrong_bytes;
  wrong_objects += other.wrong_objects;
  if (first_wrong.empty())
    first_wrong = other.first_wrong;
  for (const auto& [code, theirs] : other.errors) {
    errors_of_code& ours = errors[code];
    ours.count += theirs.count;
    if (ours.first_text.empty())
      ours.first_text = theirs.first_text;
  }
  lookup.merge(other.lookup);
  load.merge(other.load);
  store.merge(other.store);
  request.merge(other.request);
  load_ns += other.load_ns;
  store_ns += other.store_ns;
  late_ns_max = std::max(late_ns_max, other.late_ns_max);
  lost = lost || other.lost;
}

bool replay_counts::sound(bool may_be_lost) const {
  return wrong_bytes == 0 && !lost && std::all_of(errors.begin(), errors.end(), [&](const auto& e) {
           return (may_be_lost && e.first == errc::gone) || e.first == errc::busy ||
                  e.first == errc::no_space || e.first == errc::deadline;
         });
}

} // namespace terrace::cli
