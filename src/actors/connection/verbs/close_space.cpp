// close_space: the connection no longer uses a space, so that the trust group may forget it.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> close_space(client_request& request, const wire::CloseSpace& asked, protocol::descriptor_list&) {
  auto closed = request.client.holdings().close_space(static_cast<space_id>(asked.space()));
  co_await request.valid(closed);
  request.reply(wire::CreateCloseSpaceAnswer);
}

} // namespace terrace::actors::verbs
