#include "tier/objects/index_recount.hpp"

#include <algorithm>

namespace terrace {

void index_recount::tally(std::vector<journal_sums>& by_path, uint32_t slot, const resident& object,
                          bool counts) const {
  if (!readable(object.state()))
    return;
  journal_sums& of = by_path[paths_->path_of(object.offset())];
  if (counts)
    of.add(object.key().space, objects_.durable()->generation_at(slot));
  else
    of.subtract(object.key().space, objects_.durable()->generation_at(slot));
}

void index_recount::tally_recorded(const path_map& paths) {
  paths_ = paths;
  recorded_.assign(paths.paths(), {});
  const resident_table& table = objects_.table();
  for (uint32_t slot = 0; slot < table.slots(); ++slot)
    tally(recorded_, slot, table.at_slot(slot), true);
}

void index_recount::begin() {
  if (objects_.durable() == nullptr || !paths_) {
    objects_.table().begin_recount();
    return;
  }
  counted_.assign(paths_->paths(), {});
  objects_.table().begin_recount(
      [this](uint32_t slot, const resident& object, bool counts) { tally(counted_, slot, object, counts); });
}

std::vector<journal_sums> index_recount::for_journals() const {
  std::vector<journal_sums> all = counted_;
  for (const auto& space : clears_)
    for (journal_sums& one : all)
      one.forget(space, objects_.durable()->epoch() + 1);
  return all;
}

void index_recount::end_clear(std::optional<space_id> space) {
  clears_.erase(std::ranges::find(clears_, space));
}

} // namespace terrace
