#include "transfer/stall_detector.hpp"

#include <cassert>

namespace terrace {

void stall_detector::started(uint64_t tag, size_t side) {
  assert(side < sides);
  if (operations_.size() <= tag)
    operations_.resize(tag + 1);
  assert(operations_[tag].now == state::idle);
  operations_[tag] = {state::moving, static_cast<uint8_t>(side), 0};
  ++moving_;
}

bool stall_detector::ended(uint64_t tag) {
  assert(tag < operations_.size() && operations_[tag].now != state::idle);
  watched& one = operations_[tag];
  bool was_stalled = one.now == state::stalled;
  --(was_stalled ? stalled_[one.side] : moving_);
  one.now = state::idle;
  return was_stalled;
}

std::vector<uint64_t> stall_detector::tick() {
  std::vector<uint64_t> told;
  for (uint64_t tag = 0; tag < operations_.size(); ++tag) {
    watched& one = operations_[tag];
    if (one.now != state::moving || ++one.ticks <= patience_)
      continue;
    one.now = state::stalled;
    --moving_;
    ++stalled_[one.side];
    told.push_back(tag);
  }
  return told;
}

} // namespace terrace
