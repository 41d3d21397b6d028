#include "actors/connection/verbs.hpp"

#include <algorithm>

namespace terrace::actors {

namespace {

constexpr verb table[] = {
    {protocol::kind::hello, "hello", verbs::hello, 0, true},
    {protocol::kind::open_space, "open_space", verbs::open_space},
    {protocol::kind::register_region, "register_region", verbs::register_region, 1},
    {protocol::kind::unregister_region, "unregister_region", verbs::unregister_region, 0, true},
    {protocol::kind::map_segment, "map_segment", verbs::map_segment},
    {protocol::kind::lookup, "lookup", verbs::lookup},
    {protocol::kind::read_lease, "read_lease", verbs::read_lease},
    {protocol::kind::load, "load", verbs::load},
    {protocol::kind::store, "store", verbs::store},
    {protocol::kind::reserve, "reserve", verbs::reserve},
    {protocol::kind::commit, "commit", verbs::commit},
    {protocol::kind::abort, "abort", verbs::abort, 0, true},
    {protocol::kind::release, "release", verbs::release, 0, true},
    {protocol::kind::cancel, "cancel", verbs::cancel, 0, true},
    {protocol::kind::end_inference, "end_inference", verbs::end_inference, 0, true},
    {protocol::kind::clear, "clear", verbs::clear},
    {protocol::kind::await_lookup, "await_lookup", verbs::await_lookup},
    {protocol::kind::policies, "policies", verbs::policies, 0, true},
    {protocol::kind::set_policy, "set_policy", verbs::set_policy},
    {protocol::kind::status, "status", verbs::status, 0, true},
};

} // namespace

const verb* find_verb(protocol::kind kind) {
  auto found =
      std::find_if(std::begin(table), std::end(table), [&](const verb& v) { return v.kind == kind; });
  return found == std::end(table) ? nullptr : found;
}

std::span<const verb> all_verbs() { return table; }

} // namespace terrace::actors
