#include "remote/hedging.hpp"

#include <algorithm>

namespace terrace::remote {

std::optional<hedging::time_point> hedging::began(kind what, time_point now, std::chrono::nanoseconds limit) {
  requests_ = std::min(requests_ + 1, options_.tokens_max * options_.requests_for_token);
  const answers& known = of_kinds_[static_cast<size_t>(what)];
  if (known.count < answers_min)
    return std::nullopt;
  const auto delay = std::max<std::chrono::nanoseconds>(slowest_but_one_in_twenty(known), options_.delay_min);
  return now + std::min(delay, limit / 2);
}

void hedging::answered(kind what, std::chrono::nanoseconds took) {
  answers& known = of_kinds_[static_cast<size_t>(what)];
  known.took[known.count++ % answers_kept] = took;
}

bool hedging::take() {
  if (requests_ < options_.requests_for_token)
    return false;
  requests_ -= options_.requests_for_token;
  return true;
}

std::chrono::nanoseconds hedging::slowest_but_one_in_twenty(const answers& of) const {
  auto sorted = of.took;
  const size_t count = std::min(of.count, answers_kept), slower = count / 20;
  const auto place = sorted.begin() + static_cast<ptrdiff_t>(count - 1 - slower);
  std::nth_element(sorted.begin(), place, sorted.begin() + static_cast<ptrdiff_t>(count));
  return *place;
}

} // namespace terrace::remote
