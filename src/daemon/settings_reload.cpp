#include "daemon/settings.hpp"

#include "base/printable.hpp"
#include "daemon/settings_table.hpp"

#include <algorithm>

namespace terrace {

std::string option_change::text() const {
  return option + ": " + before + " -> " + after +
         (at_run_time ? ", in force now" : ", needs a restart; the old value stays in force");
}

namespace {

/// Then their sections are compared one by one.
bool have_same_groups(const std::vector<remote_options>& a, const std::vector<remote_options>& b) {
  return std::ranges::equal(a, b, {}, &remote_options::group, &remote_options::group);
}

} // namespace

std::vector<option_change> changes_at_run_time(const settings& old_settings, const settings& new_settings) {
  std::vector<option_change> changes;
  auto compare = [&](const option_spec& spec, size_t socket) {
    auto before = format_option(spec, old_settings, socket);
    auto after = format_option(spec, new_settings, socket);
    if (before != after)
      changes.push_back({option_name(spec, socket), before, after, spec.at_run_time});
  };
  auto sockets = [](const settings& s) { return format_counted(s.listen.size(), "socket"); };
  if (old_settings.listen.size() != new_settings.listen.size())
    changes.push_back({"listen", sockets(old_settings), sockets(new_settings), false});
  if (old_settings.quota != new_settings.quota) { // which contain secrets
    auto quotas = [](const settings& s) { return format_counted(s.quota.size(), "quota"); };
    changes.push_back({"quota", quotas(old_settings), quotas(new_settings), true});
  }
  if (old_settings.resp != new_settings.resp) {
    auto redis_sockets = [](const settings& s) {
      return format_counted(s.resp.size(), "socket") + " for Redis clients";
    };
    changes.push_back({"resp", redis_sockets(old_settings), redis_sockets(new_settings), false});
  }
  const bool same_remotes = have_same_groups(old_settings.remote, new_settings.remote);
  if (!same_remotes) {
    auto remotes = [](const settings& s) { return format_counted(s.remote.size(), "remote tier"); };
    changes.push_back({"remote", remotes(old_settings), remotes(new_settings), false});
  }
  const auto sections = [&](const option_spec& spec) -> size_t {
    if (spec.section == "resp") // told above
      return 0;
    if (spec.section == "remote")
      return same_remotes ? old_settings.remote.size() : 0;
    return std::min(sections_of(spec, old_settings), sections_of(spec, new_settings));
  };
  for (const auto& spec : option_table())
    for (size_t number = 0; number < sections(spec); ++number)
      compare(spec, number);
  return changes;
}

settings apply_at_run_time(const settings& old_settings, const settings& new_settings) {
  settings merged = old_settings;
  settings source = new_settings;
  for (const auto& spec : option_table()) {
    if (!spec.at_run_time)
      continue;
    // Options of sockets all need a restart.
    const bool in_force = spec.section != "remote" || have_same_groups(merged.remote, source.remote);
    for (size_t number = 0; in_force && number < sections_of(spec, merged); ++number)
      std::visit([&](auto* target) { *target = *std::get<decltype(target)>(spec.at(source, number)); },
                 spec.at(merged, number));
  }
  merged.quota = new_settings.quota;
  return merged;
}

} // namespace terrace
