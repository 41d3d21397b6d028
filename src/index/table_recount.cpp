#include "index/table_recount.hpp"

#include <algorithm>

namespace terrace {

bool table_recount::step(uint32_t slots_max) {
  for (uint32_t n = 0; n < slots_max && next_ < table_.slots(); ++n, ++next_)
    add(next_, table_.at_slot(next_));
  return next_ < table_.slots();
}

void table_recount::add(uint32_t slot, const resident& object) {
  if (object.state() == object_state::free)
    return;
  if (also_)
    also_(slot, object, true);
  uint64_t bytes = object.physical_bytes();
  auto take = [bytes](table_totals::sum& sum) {
    ++sum.objects;
    sum.bytes += bytes;
  };
  take(totals_.all);
  take(totals_.by_space[static_cast<uint32_t>(object.key().space)]);
  if (object.holds() != 0)
    take(totals_.held);
  totals_.readable += readable(object.state()) ? 1 : 0;
  totals_.reserved_bytes += object.state() == object_state::reserved ? bytes : 0;
}

void table_recount::subtract(uint32_t slot, const resident& object) {
  if (object.state() == object_state::free)
    return;
  if (also_)
    also_(slot, object, false);
  uint64_t bytes = object.physical_bytes();
  auto give = [bytes](table_totals::sum& sum) {
    --sum.objects;
    sum.bytes -= bytes;
  };
  give(totals_.all);
  auto space = totals_.by_space.find(static_cast<uint32_t>(object.key().space));
  give(space->second);
  if (space->second.objects == 0)
    totals_.by_space.erase(space);
  if (object.holds() != 0)
    give(totals_.held);
  totals_.readable -= readable(object.state()) ? 1 : 0;
  totals_.reserved_bytes -= object.state() == object_state::reserved ? bytes : 0;
}

std::vector<std::string> differences_of(const table_totals& counted, const table_totals& kept) {
  std::vector<std::string> all;
  auto compare = [&](const std::string& text, uint64_t now, uint64_t expected) {
    if (now != expected)
      all.push_back(std::to_string(now) + " " + text + " were counted, and the index keeps " +
                    std::to_string(expected));
  };
  compare("objects", counted.all.objects, kept.all.objects);
  compare("objects that lookups find", counted.readable, kept.readable);
  compare("held objects", counted.held.objects, kept.held.objects);
  compare("bytes of held objects", counted.held.bytes, kept.held.bytes);
  compare("bytes of objects being written", counted.reserved_bytes, kept.reserved_bytes);
  std::vector<uint32_t> spaces;
  for (const auto* one : {&counted.by_space, &kept.by_space})
    for (const auto& [space, sum] : *one)
      spaces.push_back(space);
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  auto of = [](const table_totals& totals, uint32_t space) {
    auto found = totals.by_space.find(space);
    return found == totals.by_space.end() ? table_totals::sum{} : found->second;
  };
  for (uint32_t space : spaces) {
    compare("objects of space " + std::to_string(space), of(counted, space).objects, of(kept, space).objects);
    compare("bytes of space " + std::to_string(space), of(counted, space).bytes, of(kept, space).bytes);
  }
  return all;
}

} // namespace terrace
