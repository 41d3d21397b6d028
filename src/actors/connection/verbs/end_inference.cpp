// end_inference: how an inference request ended, for learning policies.
#include "actors/connection/verbs.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

void end_inference(connection& client, const connection::request& what, const wire::EndInference& asked,
                   protocol::descriptor_list&) {
  inference_end end;
  end.inference = asked.inference();
  if (auto tokens = asked.output_tokens())
    end.outcome.output_tokens = *tokens;
  end.outcome.reason = static_cast<finish_reason>(asked.reason());
  end.outcome.session_closed = asked.session_closed();
  if (auto think = asked.think_time_ms())
    end.outcome.think_time_ns = uint64_t{*think} * 1'000'000;
  if (auto time = asked.time_ns())
    end.told = *time;
  if (client.group().feed && client.group().feed->offer(1))
    client.send(client.group().shadow, end);
  client.tell_policy(std::move(end), 1);
  client.reply(what, wire::CreateEndInferenceAnswer);
}

} // namespace terrace::actors::verbs
