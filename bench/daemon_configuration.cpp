#include "bench/daemon_configuration.hpp"

namespace terrace::bench {

std::string daemon_configuration(const bench_daemon_options& with, const daemon_places& at) {
  std::string text;
  if (with.workers != 0)
    text += "[daemon]\nworkers = " + std::to_string(with.workers) + "\n";
  text += "[[listen]]\npath = \"" + at.socket + "\"\n";
  if (with.isolated)
    text += "isolated = true\n";
  if (with.second_group)
    text += "[[listen]]\npath = \"" + at.second_socket + "\"\ngroup = \"second\"\n";
  if (!with.connection.empty())
    text += "[connection]\n" + with.connection;
  if (with.host_bytes != 0)
    text += "[host]\nbytes = " + std::to_string(with.host_bytes) + "\n";
  text += "[disk]\n";
  text += with.disk ? "path = \"" + at.state + "\"\n" : "bytes = 0\n";
  if (with.disk && with.disk_bytes != 0)
    text += "bytes = " + std::to_string(with.disk_bytes) + "\n";
  // Several daemons may run at the same time, each with its metrics.
  text += "[metrics]\naddress = \"127.0.0.1:" + std::to_string(with.metrics_port) + "\"\n";
  return text + with.more;
}

} // namespace terrace::bench
