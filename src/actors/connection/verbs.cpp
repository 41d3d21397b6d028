#include "actors/connection/verbs.hpp"

#include <array>

namespace terrace::actors {

namespace {

/// A frame's body is verified before it is read. A mistake in it is the answer; only a handshake ends with one.
template <class Table, auto work>
task<> begin(client_request& request, protocol::frame& frame) {
  auto asked = protocol::parse<Table>(frame.body);
  if (asked) {
    if constexpr (requires { (*asked)->options(); })
      request.set_terms(**asked);
    return work(request, **asked, frame.descriptors);
  }
  request.inbox().refuse_frame(request, frame, asked.error());
  return {};
}

constexpr std::array table{
#define TERRACE_VERB(NAME, TABLE, ...) verb{protocol::kind::NAME, #NAME, begin<wire::TABLE, verbs::NAME>},
#include "protocol/verbs.def"
};

static_assert(table.size() < metrics::request_probe::verbs_max, "each verb is counted");

} // namespace

const verb* find_verb(protocol::kind kind) {
  return protocol::is_request(kind) ? &table[static_cast<size_t>(kind) - 1] : nullptr;
}

std::span<const verb> all_verbs() { return table; }

} // namespace terrace::actors
