// close_space: the connection no longer uses a space, so that the trust group may forget it.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void close_space(connection& client, const connection::request& what, const wire::CloseSpace& asked,
                 protocol::descriptor_list&) {
  auto closed = client.holdings().close_space(static_cast<space_id>(asked.space()));
  if (!client.ok(what, closed))
    return;
  client.reply(what, wire::CreateCloseSpaceAnswer);
}

} // namespace terrace::actors::verbs
