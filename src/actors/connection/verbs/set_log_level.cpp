// set_log_level: changes what the daemon logs.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> set_log_level(client_request& request, const wire::SetLogLevel& asked, protocol::descriptor_list&) {
  if (!request.may_govern("the log is that of the whole daemon"))
    co_return;
  const auto& environment = request.client.environment();
  if (!environment.set_log_level) {
    request.refuse({errc::unsupported, "the log level of this daemon cannot be changed"});
    co_return;
  }
  std::string level = asked.level()->str();
  auto before = environment.set_log_level(level);
  co_await request.valid(before);
  if (environment.log)
    environment.log("daemon.log_level: \"" + *before + "\" -> \"" + level + "\", for an operator");
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSetLogLevelAnswerDirect(body, before->c_str());
  });
}

} // namespace terrace::actors::verbs
