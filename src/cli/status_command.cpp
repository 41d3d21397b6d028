// terrace status
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/status_report.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class status_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace status", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto status = daemon->admin().status(daemon_.until());
    if (!status)
      return request_failed(*daemon, "asking for the status", status.error());
    if (daemon_.json)
      print_json(to, to_json(*status));
    else
      to.print("{}", format_status(*status));
    return exit_code::ok;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_status_command() { return std::make_unique<status_command>(); }

// terrace drain, terrace shutdown

namespace {

class shutdown_command final : public command {
 public:
  explicit shutdown_command(bool when_idle) : when_idle_(when_idle) {}

  void declare(CLI::App& app) override {
    app.add_flag("--yes", yes_, "Do not ask");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, when_idle_ ? "terrace drain" : "terrace shutdown", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    if (auto agreed = confirm_on_terminal(
            to,
            when_idle_ ? "the daemon will admit no new client, and end when the present ones have left"
                       : "the daemon will end, and its clients go on without a cache",
            yes_);
        !agreed)
      return tl::unexpected(agreed.error());
    auto clients = daemon->admin().shut_down(when_idle_, daemon_.until());
    if (!clients)
      return request_failed(*daemon, when_idle_ ? "draining the daemon" : "ending the daemon",
                            clients.error());
    if (daemon_.json)
      print_json(to, {{"clients", *clients}});
    else
      to.print("the daemon ends {}{}\n",
               when_idle_ ? "when its clients have left: " : "and answers what is in flight: ",
               format_counted(*clients, "client"));
    return exit_code::ok;
  }

 private:
  bool when_idle_;
  bool yes_ = false;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_drain_command() { return std::make_unique<shutdown_command>(true); }
std::unique_ptr<command> make_shutdown_command() { return std::make_unique<shutdown_command>(false); }

// terrace log-level

namespace {

class log_level_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("level", level_, "trace, debug, info, warning or error")->required();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace log-level", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto before = daemon->admin().set_log_level(level_, daemon_.until());
    if (!before)
      return request_failed(*daemon, "setting the log level", before.error());
    if (daemon_.json)
      print_json(to, {{"level", level_}, {"before", *before}});
    else
      to.print("the log level is now {}; it was {}\n", level_, *before);
    return exit_code::ok;
  }

 private:
  std::string level_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_log_level_command() { return std::make_unique<log_level_command>(); }

// terrace check

namespace {

std::string format_check(const client::check_result& found) {
  std::string text =
      fmt::format("counted again: {}, {} and {}\n\n", format_counted(found.objects, "object"),
                  format_counted(found.sessions, "session"), format_counted(found.connections, "connection"));
  table rows({{"references of", align::left}, {"count"}});
  for (const auto& [kind, count] : found.references)
    rows.add({kind, format_count(count)});
  text += rows.to_string() + "\n";
  if (!found.idle)
    text += "requests were in progress: what only requests may hold was not compared\n";
  for (const std::string& one : found.left_out)
    text += "not compared: " + one + "\n";
  for (const std::string& one : found.differences)
    text += "difference: " + one + "\n";
  text += format_counted(found.count, "difference") + "\n";
  return text;
}

json check_json(const client::check_result& found) {
  return {{"count", found.count},       {"differences", found.differences}, {"objects", found.objects},
          {"sessions", found.sessions}, {"connections", found.connections}, {"references", found.references},
          {"idle", found.idle},         {"left_out", found.left_out}};
}

class check_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace check", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto found = daemon->admin().check(daemon_.until());
    if (!found)
      return request_failed(*daemon, "checking", found.error());
    if (daemon_.json)
      print_json(to, check_json(*found));
    else
      to.print("{}", format_check(*found));
    return found->count == 0 ? exit_code::ok : exit_code::failed;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_check_command() { return std::make_unique<check_command>(); }

// terrace policies

namespace {

class policies_command final : public command {
 public:
  void declare(CLI::App& app) override {
    daemon_.declare(app);
    app.add_option("set", words_, "'set TIER POLICY' sets the policy of tier host or disk")->expected(0, 3);
  }

  outcome<exit_code> run(console& to) override {
    if (!words_.empty() && (words_.size() != 3 || words_.front() != "set"))
      return bad_usage("expected nothing, or 'set TIER POLICY' such as 'set host arc', got '" +
                       words_.front() + "'" + (words_.size() == 1 ? "" : " and more"));
    auto daemon = connect(daemon_, "terrace policies", words_.empty());
    if (!daemon)
      return tl::unexpected(daemon.error());
    return words_.empty() ? show(*daemon, to) : set(*daemon, to);
  }

 private:
  outcome<exit_code> show(client::connection& daemon, console& to) {
    auto status = daemon.admin().policies(daemon_.until());
    if (!status)
      return request_failed(daemon, "asking for the policies", status.error());
    if (daemon_.json)
      print_json(to, to_json(*status));
    else
      to.print("{}", format_policies(*status));
    return exit_code::ok;
  }

  outcome<exit_code> set(client::connection& daemon, console& to) {
    const std::string &tier = words_[1], &policy = words_[2];
    auto before = daemon.admin().set_policy(tier, policy, daemon_.until());
    if (!before)
      return request_failed(daemon, "setting the policy of " + tier, before.error());
    if (daemon_.json)
      print_json(to, {{"tier", tier}, {"policy", policy}, {"before", *before}});
    else
      to.print("the policy of {} is now {}; it was {}\n", tier, policy, *before);
    return exit_code::ok;
  }

  daemon_options daemon_;
  std::vector<std::string> words_;
};

} // namespace

std::unique_ptr<command> make_policies_command() { return std::make_unique<policies_command>(); }

// terrace clients

namespace {

std::string mean_latency(const client::client_status& one) {
  if (one.answered == 0)
    return "-";
  return format_duration(static_cast<double>(one.latency.count()) * 1e3 / static_cast<double>(one.answered));
}

/// Two tables, because one is wider than a terminal.
std::string format_clients(const std::vector<client::client_status>& clients) {
  if (clients.empty())
    return "no clients\n";
  table who({{"client"},
             {"name", align::left},
             {"pid"},
             {"uid"},
             {"state", align::left},
             {"connected"},
             {"requests"},
             {"in flight"}});
  table what(
      {{"client"}, {"mean latency"}, {"regions"}, {"region bytes"}, {"leases"}, {"leased"}, {"quarantined"}});
  for (const client::client_status& one : clients) {
    std::string number = std::to_string(static_cast<uint64_t>(one.connection));
    who.add({number, one.name, std::to_string(one.pid), std::to_string(one.uid), one.state,
             one.age.count() == 0 ? "< 1 ms" : format_duration(static_cast<double>(one.age.count()) * 1e6),
             format_count(one.requests), format_count(one.requests_in_flight)});
    what.add({number, mean_latency(one), format_count(one.regions), readable_bytes(one.region_bytes),
              format_count(one.leases), readable_bytes(one.leased_bytes),
              readable_bytes(one.quarantined_bytes)});
  }
  return who.to_string() + "\n" + what.to_string();
}

class clients_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace clients", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto status = daemon->admin().status(daemon_.until());
    if (!status)
      return request_failed(*daemon, "asking for the clients", status.error());
    if (!daemon_.json) {
      to.print("{}", format_clients(status->clients));
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
