// abort: releases reserved staging memory.
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/reservations.hpp"

namespace terrace::actors::verbs {

void abort(connection& client, const connection::request& what, const wire::Abort& asked,
           protocol::descriptor_list&) {
  auto reservation = take_reservation(client, what, asked.reservation());
  if (!reservation)
    return;
  put_back(client, *reservation);
  client.reply(what, wire::CreateAbortAnswer);
}

} // namespace terrace::actors::verbs
