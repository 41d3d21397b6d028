// terrace clients

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/status_report.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

std::string mean_latency(const client::client_status& one) {
  if (one.answered == 0)
    return "-";
  return format_duration(static_cast<double>(one.latency.count()) * 1e3 / static_cast<double>(one.answered));
}

std::string format_clients(const std::vector<client::client_status>& clients) {
  table rows({{"client"},
              {"name", align::left},
              {"pid"},
              {"uid"},
              {"state", align::left},
              {"connected"},
              {"requests"},
              {"in flight"},
              {"mean latency"},
              {"regions"},
              {"leases"},
              {"leased"},
              {"quarantined"}});
  for (const client::client_status& one : clients)
    rows.add({std::to_string(static_cast<uint64_t>(one.connection)), one.name, std::to_string(one.pid),
              std::to_string(one.uid), one.state, format_duration(static_cast<double>(one.age.count()) * 1e6),
              format_count(one.requests), format_count(one.requests_in_flight), mean_latency(one),
              format_bytes(one.region_bytes), format_count(one.leases), format_bytes(one.leased_bytes),
              format_bytes(one.quarantined_bytes)});
  return rows.to_string();
}

class clients_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace clients", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto status = daemon->status(daemon_.until());
    if (!status)
      return request_failed(*daemon, "asking for the clients", status.error());
    if (!daemon_.json) {
      fmt::print(to.out, "{}", format_clients(status->clients));
      return exit_code::ok;
    }
    json clients = json::array();
    for (const client::client_status& one : status->clients)
      clients.push_back(to_json(one));
    print_json(to, {{"clients", clients}});
    return exit_code::ok;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_clients_command() { return std::make_unique<clients_command>(); }

} // namespace terrace::cli
