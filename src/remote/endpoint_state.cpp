#include "remote/endpoint_state.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace terrace::remote {

void byte_window::end(uint64_t bytes) {
  assert(bytes <= in_flight_);
  in_flight_ -= bytes;
}

void byte_window::succeeded(uint64_t bytes) {
  end(bytes);
  size_ = std::min(size_ + bytes, bound_);
}

void byte_window::keep_within(uint64_t bytes) {
  bound_ = std::clamp(bytes, options_.smallest_bytes, options_.largest_bytes);
  size_ = std::min(size_, bound_);
}

void byte_window::restart() {
  size_ = options_.smallest_bytes;
  in_flight_ = 0;
}

void request_window::succeeded() {
  if (size_ == most_ || ++answered_ < size_)
    return;
  ++size_;
  answered_ = 0;
}

void request_window::too_many() {
  size_ = std::max<size_t>(1, size_ / 2);
  answered_ = 0;
}

std::optional<std::chrono::milliseconds> pause_after_refusal(uint32_t tried, std::chrono::seconds wanted,
                                                             uint64_t random) {
  constexpr uint32_t tries_max = 2;
  constexpr uint64_t first_bound = 100; // milliseconds
  constexpr std::chrono::seconds wanted_max{1};
  if (tried >= tries_max || wanted > wanted_max)
    return std::nullopt;
  const uint64_t bound = first_bound << (2 * tried);
  return wanted + std::chrono::milliseconds(random % (bound + 1));
}

void silence::begin(std::chrono::nanoseconds limit) {
  limit_ = limit;
  since_.reset();
}

void silence::awaits(bool something, time_point now) {
  if (!something)
    since_.reset();
  else if (!since_)
    heard(now);
}

void silence::heard(time_point now) {
  since_ = now;
  bytes_ = 0;
}

void silence::received(uint64_t bytes, time_point now) {
  bytes_ += bytes;
  if (bytes_ >= bytes_that_count)
    heard(now);
}

std::optional<silence::time_point> silence::ends_at() const {
  return since_ ? std::optional(*since_ + limit_) : std::nullopt;
}

void breaker::note(bool failure) {
  constexpr uint32_t kept = (uint32_t{1} << results_kept) - 1;
  results_ = (results_ << 1 | (failure ? 1u : 0u)) & kept;
  in_a_row_ = failure ? in_a_row_ + 1 : 0;
}

void breaker::succeeded() {
  if (state_ == state::closed)
    note(false);
}

bool breaker::failed(time_point now, uint64_t random) {
  if (state_ != state::closed)
    return false;
  note(true);
  if (in_a_row_ < options_.failures_in_a_row &&
      static_cast<uint32_t>(std::popcount(results_)) < options_.failures_of_last)
    return false;
  const bool again = closed_at_ && now - *closed_at_ < options_.soon;
  quick_ = !again && options_.quick_pause.count() != 0;
  if (again)
    pause_ = std::min(std::max(2 * pause_, options_.first_pause), options_.longest_pause_refused);
  else
    pause_ = quick_ ? options_.quick_pause : options_.first_pause;
  open(now, random);
  return true;
}

void breaker::begin_trial() {
  assert(state_ == state::open);
  state_ = state::half_open;
}

void breaker::trial_succeeded(time_point now) {
  assert(state_ == state::half_open);
  state_ = state::closed;
  closed_at_ = now;
  quick_ = false;
  in_a_row_ = results_ = 0;
}

void breaker::trial_failed(trial how, time_point now, uint64_t random) {
  assert(state_ == state::half_open);
  const auto longest = how == trial::refused ? options_.longest_pause_refused : options_.longest_pause;
  pause_ = std::exchange(quick_, false) ? options_.first_pause : std::min(2 * pause_, longest);
  open(now, random);
}

void breaker::open(time_point now, uint64_t random) {
  state_ = state::open;
  const auto all = static_cast<uint64_t>(pause_.count());
  retry_at_ = now + std::chrono::milliseconds(all - random % (quick_ ? all : all / 2 + 1)); // never at once
}

} // namespace terrace::remote
