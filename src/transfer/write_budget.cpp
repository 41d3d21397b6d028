#include "transfer/write_budget.hpp"

#include <algorithm>

namespace terrace {

namespace {
constexpr double seconds_per_day = 86'400;
}

write_budget::write_budget(uint64_t bytes_per_day, time_point now)
    : bytes_per_day_(bytes_per_day), capacity_(static_cast<int64_t>(bytes_per_day / 24)),
      tokens_(static_cast<double>(capacity_)), filled_(now) {}

void write_budget::refill(time_point now) {
  double seconds = std::chrono::duration<double>(now - filled_).count();
  filled_ = now;
  tokens_ = std::min(static_cast<double>(capacity_),
                     tokens_ + seconds * static_cast<double>(bytes_per_day_) / seconds_per_day);
}

bool write_budget::take(uint64_t bytes, time_point now) {
  if (bytes_per_day_ == 0)
    return true;
  refill(now);
  double wanted = static_cast<double>(bytes);
  if (tokens_ < std::min(wanted, static_cast<double>(capacity_)))
    return false;
  tokens_ -= wanted;
  return true;
}

void write_budget::give_back(uint64_t bytes) {
  tokens_ = std::min(static_cast<double>(capacity_), tokens_ + static_cast<double>(bytes));
}

int64_t write_budget::left(time_point now) {
  refill(now);
  return static_cast<int64_t>(tokens_);
}

} // namespace terrace
