// What the connections of a trust group share, in tests.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/supervision/group_builder.hpp"

namespace terrace::actors::test {

/// `log` outlives the environment.
inline std::shared_ptr<connection_environment> environment_of(std::shared_ptr<trust_group> group,
                                                              const group_probes& probes,
                                                              std::vector<std::string>& log) {
  auto made = std::make_shared<connection_environment>();
  made->group = std::move(group);
  made->clients = std::make_shared<connected_clients>();
  made->client_probe = probes.clients;
  made->request_probe = probes.requests;
  made->spaces = std::make_shared<metrics::space_table>(4);
  made->log = [&log](const std::string& line) { log.push_back(line); };
  return made;
}

} // namespace terrace::actors::test
