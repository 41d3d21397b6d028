#include "transfer/io_scheduler.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
constexpr uint32_t patience = 8;
}

std::string_view to_string(io_class which) {
  switch (which) {
    case io_class::load: return "load";
    case io_class::prefetch: return "prefetch";
    case io_class::write: return "write";
    case io_class::scrub: return "scrub";
  }
  return "unknown";
}

io_scheduler::io_scheduler(const io_limits& limits) : limits_(limits) {
  for (of_class& one : classes_)
    one.window = limits_.beside_bytes;
}

uint64_t io_scheduler::bytes_above(size_t i) const {
  uint64_t bytes = 0;
  for (size_t above = 0; above < i; ++above)
    bytes += classes_[above].bytes;
  return bytes;
}

uint64_t io_scheduler::piece(size_t i, uint64_t head, bool beside, const io_room& room) const {
  const of_class& mine = classes_[i];
  uint64_t budget = limits_.bytes_in_flight;
  uint64_t longest = limits_.piece_bytes;
  if (beside) {
    budget = std::max(limits_.beside_bytes, bytes_above(i) * limits_.beside_percent[i] / 100);
    longest = std::min(longest, limits_.beside_bytes);
  } else if (i != 0) {
    budget = mine.window;
    longest = std::min(longest, std::max(budget, limits_.beside_bytes));
  }
  longest = std::min(longest, room.piece_bytes);
  uint64_t bytes = head <= longest + longest / 8 ? head : longest; // avoids a tiny last piece
  if (mine.operations != 0 && mine.bytes + bytes > budget)
    return 0;
  return bytes;
}

std::optional<io_scheduler::grant> io_scheduler::next(const std::array<uint64_t, io_classes>& heads,
                                                      const io_room& room) {
  if (operations_ >= std::min(limits_.depth, std::max(room.operations, uint32_t{1})))
    return std::nullopt;
  uint64_t bytes_max = std::min(limits_.bytes_in_flight, room.bytes);
  // `beside[i]`: a class above i waits or is active. Its ramp-up is then reset.
  std::array<bool, io_classes> beside{};
  bool anyone = false;
  for (size_t i = 0; i < io_classes; ++i) {
    beside[i] = anyone;
    if (anyone)
      classes_[i].window = limits_.beside_bytes;
    anyone = anyone || heads[i] != 0 || classes_[i].operations != 0;
  }
  auto starves = [&](size_t i) { return heads[i] != 0 && classes_[i].operations == 0; };
  auto take = [&](size_t i, uint64_t bytes) -> std::optional<grant> {
    // The next operation waits for room; smaller ones behind it do not overtake it.
    if (operations_ != 0 && bytes_ + bytes > bytes_max)
      return std::nullopt;
    for (size_t other = 0; other < io_classes; ++other)
      if (other != i && starves(other))
        ++classes_[other].passed_over;
    of_class& mine = classes_[i];
    mine.passed_over = 0;
    ++mine.operations;
    mine.bytes += bytes;
    ++operations_;
    bytes_ += bytes;
    assert(operations_ <= limits_.depth && (operations_ == 1 || bytes_ <= bytes_max));
    return grant{static_cast<io_class>(i), bytes};
  };
  for (uint32_t times : {patience, uint32_t{0}})
    for (size_t i = 0; i < io_classes; ++i)
      if (starves(i) && classes_[i].passed_over >= times)
        return take(i, piece(i, heads[i], beside[i], room));
  for (size_t i = 0; i < io_classes; ++i)
    if (heads[i] != 0)
      if (uint64_t bytes = piece(i, heads[i], beside[i], room); bytes != 0)
        return take(i, bytes);
  return std::nullopt;
}

void io_scheduler::finished(io_class priority, uint64_t bytes) {
  auto i = static_cast<size_t>(priority);
  of_class& mine = classes_[i];
  assert(mine.operations != 0 && mine.bytes >= bytes);
  --mine.operations;
  mine.bytes -= bytes;
  --operations_;
  bytes_ -= bytes;
  bool beside = false;
  for (size_t above = 0; above < i; ++above)
    beside = beside || classes_[above].operations != 0;
  if (!beside)
    mine.window = std::min(mine.window + bytes, std::max(limits_.alone_bytes, limits_.beside_bytes));
}

} // namespace terrace
