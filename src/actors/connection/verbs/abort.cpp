// abort: releases reserved staging memory.
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/reservations.hpp"

namespace terrace::actors::verbs {

task<> abort(client_request& request, const wire::Abort& asked, protocol::descriptor_list&) {
  auto reservation = take_reservation(request, asked.reservation());
  if (!reservation)
    co_return;
  put_back(request.client, *reservation);
  request.reply(wire::CreateAbortAnswer);
}

} // namespace terrace::actors::verbs
