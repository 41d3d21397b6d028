// shutdown: ends the daemon in order, as SIGTERM does, now or once its clients have left.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> shutdown(client_request& request, const wire::Shutdown& asked, protocol::descriptor_list&) {
  if (!request.may_govern("the daemon serves all trust groups"))
    co_return;
  const auto& environment = request.client.environment();
  if (!environment.shut_down) {
    request.refuse({errc::unsupported, "this daemon cannot be ended by a request"});
    co_return;
  }
  size_t clients = environment.clients->count(standing::client);
  if (environment.log)
    environment.log(asked.when_idle() ? "an operator drains the daemon: it ends once its " +
                                            std::to_string(clients) + " clients have left"
                                      : std::string("an operator ends the daemon"));
  // The connections are ended later, by messages: the answer is sent before.
  if (asked.when_idle())
    environment.clients->drain(environment.shut_down);
  else
    environment.shut_down();
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateShutdownAnswer(body, static_cast<uint32_t>(clients));
  });
}

} // namespace terrace::actors::verbs
