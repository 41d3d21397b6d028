#include "storage/disk/damage_reports.hpp"

#include "storage/disk/path_parts.hpp"

namespace terrace {

std::vector<damage_reports::report> damage_reports::add(const std::vector<moved_object>& objects,
                                                        const std::vector<size_t>& bad,
                                                        damage_log::time_point now) {
  std::vector<report> all(paths_->size());
  for (size_t i : bad) {
    report& of = all[paths_->locate(objects[i].place.offset).path];
    ++(is_superseded(objects[i]) ? of.superseded : of.damaged);
  }
  for (size_t path = 0; path < all.size(); ++path) {
    all[path].path = path;
    if (all[path].damaged == 0)
      continue;
    const std::string& file = paths_->file(path)->path();
    all[path].line = logs_[path].add(file, all[path].damaged, now);
    all[path].notice = logs_[path].notice(file);
  }
  std::erase_if(all, [](const report& one) { return one.superseded == 0 && one.damaged == 0; });
  return all;
}

} // namespace terrace
