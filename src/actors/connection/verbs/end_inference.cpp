// end_inference: how an inference request ended, for learning policies.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

void end_inference(connection& client, const connection::request& what, const wire::EndInference& asked,
                   protocol::descriptor_list&) {
  auto end = end_of(asked);
  if (client.group().feed && client.group().feed->offer(1))
    client.send(client.group().shadow, end);
  client.tell_policy(std::move(end), 1);
  client.reply(what, wire::CreateEndInferenceAnswer);
}

} // namespace terrace::actors::verbs
