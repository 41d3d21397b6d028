#include "actors/connection/verbs.hpp"

#include <array>

namespace terrace::actors {

namespace {

/// A frame's body is verified before it is read. A mistake in it is the answer; only a handshake ends with one.
template <class Table, auto work>
void serve(connection& client, const connection::request& what, protocol::frame& frame) {
  if (auto asked = protocol::parse<Table>(frame.body))
    work(client, what, **asked, frame.descriptors);
  else
    client.refuse_frame(what, frame, asked.error());
}

constexpr std::array table{
#define TERRACE_VERB(NAME, TABLE, ...) verb{protocol::kind::NAME, #NAME, serve<wire::TABLE, verbs::NAME>},
#include "protocol/verbs.def"
};

static_assert(table.size() < metrics::request_probe::verbs_max, "each verb is counted");

} // namespace

const verb* find_verb(protocol::kind kind) {
  return protocol::is_request(kind) ? &table[static_cast<size_t>(kind) - 1] : nullptr;
}

std::span<const verb> all_verbs() { return table; }

} // namespace terrace::actors
