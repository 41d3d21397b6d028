#include "daemon/settings.hpp"

#include "daemon/settings_table.hpp"

#include <algorithm>

namespace terrace {

std::string option_change::text() const {
  return option + ": " + before + " -> " + after +
         (at_run_time ? ", in force now" : ", needs a restart; the old value stays in force");
}

std::vector<option_change> changes_at_run_time(const settings& old_settings, const settings& new_settings) {
  std::vector<option_change> changes;
  auto compare = [&](const option_spec& spec, size_t socket) {
    auto before = format_option(spec, old_settings, socket);
    auto after = format_option(spec, new_settings, socket);
    if (before != after)
      changes.push_back({option_name(spec, socket), before, after, spec.at_run_time});
  };
  auto sockets = [](const settings& s) { return std::to_string(s.listen.size()) + " sockets"; };
  if (old_settings.listen.size() != new_settings.listen.size())
    changes.push_back({"listen", sockets(old_settings), sockets(new_settings), false});
  if (old_settings.quota != new_settings.quota) { // which contain secrets
    auto quotas = [](const settings& s) { return std::to_string(s.quota.size()) + " quotas"; };
    changes.push_back({"quota", quotas(old_settings), quotas(new_settings), true});
  }
  if (old_settings.resp != new_settings.resp) {
    auto redis_sockets = [](const settings& s) {
      return std::to_string(s.resp.size()) + " sockets for Redis clients";
    };
    changes.push_back({"resp", redis_sockets(old_settings), redis_sockets(new_settings), false});
  }
  if (old_settings.remote != new_settings.remote) {
    auto remotes = [](const settings& s) { return std::to_string(s.remote.size()) + " remote tiers"; };
    changes.push_back({"remote", remotes(old_settings), remotes(new_settings), false});
  }
  auto common = std::min(old_settings.listen.size(), new_settings.listen.size());
  for (const auto& spec : option_table()) {
    if (spec.section == "resp" || spec.section == "remote") // told above
      continue;
    for (size_t socket = 0; socket < (spec.section == "listen" ? common : 1); ++socket)
      compare(spec, socket);
  }
  return changes;
}

settings apply_at_run_time(const settings& old_settings, const settings& new_settings) {
  settings merged = old_settings;
  settings source = new_settings;
  for (const auto& spec : option_table()) {
    if (!spec.at_run_time)
      continue;
    // Options of sockets all need a restart, so the socket index is irrelevant here.
    std::visit([&](auto* target) { *target = *std::get<decltype(target)>(spec.at(source, 0)); },
               spec.at(merged, 0));
  }
  merged.quota = new_settings.quota;
  return merged;
}

} // namespace terrace
