#include "scheduler.hpp"

#include <algorithm>

namespace terrace::simulation {

scheduler::event_id scheduler::after(std::chrono::nanoseconds delay, std::function<void()> run) {
  key at{now_ + std::max(delay, std::chrono::nanoseconds{}), random_.next(), ++last_};
  keys_.emplace(last_, at);
  events_.emplace(at, std::move(run));
  return last_;
}

void scheduler::cancel(event_id which) {
  auto found = keys_.find(which);
  if (found == keys_.end())
    return;
  events_.erase(found->second);
  keys_.erase(found);
}

bool scheduler::step() {
  if (events_.empty())
    return false;
  auto first = events_.extract(events_.begin());
  now_ = std::get<0>(first.key());
  keys_.erase(std::get<2>(first.key()));
  ++steps_;
  first.mapped()();
  return true;
}

void scheduler::note(std::initializer_list<uint64_t> what) {
  mix(static_cast<uint64_t>(now_.count()));
  for (uint64_t word : what)
    mix(word);
}

/// FNV-1a, byte by byte.
void scheduler::mix(uint64_t word) {
  for (int byte = 0; byte < 8; ++byte)
    hash_ = (hash_ ^ (word >> 8 * byte & 0xff)) * 0x100000001b3;
}

} // namespace terrace::simulation
