// terrace doctor

#include "cli/command.hpp"
#include "cli/daemon_needs.hpp"
#include "cli/doctor.hpp"
#include "cli/json.hpp"

#include <CLI/CLI.hpp>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace terrace::cli {

namespace {

constexpr const char* installed_config = "/etc/terrace/terraced.toml";

const char* word_of(health state) {
  switch (state) {
    case health::ok: return "ok";
    case health::warning: return "warning";
    case health::failure: return "FAILS";
  }
  return "";
}

class doctor_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--config", config_,
                   "Configuration file of the daemon; by default /etc/terrace/terraced.toml for root and the "
                   "unit's user if it exists, else the daemon's defaults");
    app.add_option("--state-dir", state_dir_, "Directory of the disk tier's files, as for terraced");
    app.add_option("--terraced", terraced_,
                   "The daemon's program, which reads the configuration; by default the one beside this "
                   "command, or in PATH");
    app.add_flag(
        "--unit", unit_,
        "Print the drop-in with which the systemd unit may write to all folders of the configuration");
    app.add_flag("--no-disk-probe", no_probe_, "Write no 64 MiB to each disk");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto subject = read();
    if (!subject)
      return tl::unexpected(subject.error());
    if (unit_) {
      std::string text = unit_drop_in(*subject);
      if (text.empty())
        fmt::print(to.err, "the unit may write to all folders of the configuration: no drop-in is needed\n");
      fmt::print(to.out, "{}", text);
      return exit_code::ok;
    }
    doctor_options options;
    if (no_probe_)
      options.probe_bytes = 0;
    auto findings = examine(*subject, options);
    if (json_)
      print_json(to, facts(findings));
    else
      report(to, findings);
    return fails(findings) ? exit_code::failed : exit_code::ok;
  }

 private:
  /// The installed file is that of the unit, so it is examined for root and for the unit's user alone: whoever else starts a
  /// daemon has its defaults.
  needs_question question() const {
    needs_question asks{.program = terraced_.empty() ? find_terraced() : terraced_, .tries_remotes = !unit_};
    std::string config = config_;
    const passwd* unit = ::getpwnam("terrace");
    const bool is_unit = unit != nullptr && unit->pw_uid == ::geteuid();
    if (config.empty() && (::geteuid() == 0 || is_unit) && std::filesystem::exists(installed_config)) {
      config = installed_config;
      if (is_unit) // as the unit sets them
        asks.environment = {"STATE_DIRECTORY=/var/lib/terrace", "RUNTIME_DIRECTORY=/run/terrace"};
    }
    if (!config.empty())
      asks.words = {"--config", config};
    if (!state_dir_.empty())
      asks.words.insert(asks.words.end(), {"--state-dir", state_dir_});
    return asks;
  }

  outcome<doctor_subject> read() const {
    auto asks = question();
    if (!asks.program.empty())
      return ask_daemon(asks);
    doctor_subject unknown;
    unknown.told.push_back({"configuration", health::warning,
                            "terraced is neither beside this command nor in PATH: no configuration was read",
                            "install it, or name it with --terraced"});
    return unknown;
  }

  static bool fails(const std::vector<finding>& findings) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const finding& each) { return each.state == health::failure; });
  }

  static json facts(const std::vector<finding>& findings) {
    json list = json::array();
    for (const finding& each : findings) {
      json one{{"name", each.name},
               {"state", each.state == health::failure ? "failure" : word_of(each.state)},
               {"text", each.text}};
      if (!each.fix.empty())
        one["fix"] = each.fix;
      list.push_back(std::move(one));
    }
    return {{"ok", !fails(findings)}, {"findings", std::move(list)}};
  }

  static void report(console& to, const std::vector<finding>& findings) {
    size_t warnings = 0, failures = 0;
    for (const finding& each : findings) {
      fmt::print(to.out, "{:<8} {}: {}\n", word_of(each.state), each.name, each.text);
      if (!each.fix.empty())
        fmt::print(to.out, "{:<8} -> {}\n", "", each.fix);
      warnings += each.state == health::warning;
      failures += each.state == health::failure;
    }
    if (warnings + failures == 0)
      fmt::print(to.out, "nothing is missing\n");
    else
      fmt::print(to.out, "{}, {} to look at\n",
                 failures == 0 ? "the daemon can start"
                               : fmt::format("{} to fix before the daemon can start", failures),
                 warnings);
  }

  std::string config_;
  std::string state_dir_;
  std::string terraced_;
  bool unit_ = false;
  bool no_probe_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_doctor_command() { return std::make_unique<doctor_command>(); }

} // namespace terrace::cli
