// set_log_level: changes what the daemon logs.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void set_log_level(connection& client, const connection::request& what, const wire::SetLogLevel& asked,
                   protocol::descriptor_list&) {
  if (!client.may_govern(what, "the log is that of the whole daemon"))
    return;
  const auto& environment = client.environment();
  if (!environment.set_log_level) {
    client.refuse(what, {errc::unsupported, "the log level of this daemon cannot be changed"});
    return;
  }
  std::string level = asked.level()->str();
  auto before = environment.set_log_level(level);
  if (!client.ok(what, before))
    return;
  if (environment.log)
    environment.log("daemon.log_level: \"" + *before + "\" -> \"" + level + "\", for an operator");
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSetLogLevelAnswerDirect(body, before->c_str());
  });
}

} // namespace terrace::actors::verbs
