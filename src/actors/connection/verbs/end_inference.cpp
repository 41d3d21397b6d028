// end_inference: how an inference request ended, for learning policies.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

task<> end_inference(client_request& request, const wire::EndInference& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto end = end_of(asked);
  if (client.group().feed && client.group().feed->offer_or_skip(1))
    request.actor.send(client.group().shadow, end);
  request.actor.tell_policy(std::move(end), 1);
  request.reply(wire::CreateEndInferenceAnswer);
  co_return;
}

} // namespace terrace::actors::verbs
