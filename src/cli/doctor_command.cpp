// terrace doctor

#include "cli/command.hpp"
#include "cli/doctor.hpp"
#include "cli/json.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace terrace::cli {

// ---- what it reads of a daemon's configuration ----

namespace {

/// A size that the file gives as a number or as "4GiB".
outcome<void> read_size(const toml::table& file, std::string_view section, const std::string& name,
                        uint64_t& to) {
  auto value = file[section]["bytes"];
  if (auto number = value.value_exact<int64_t>(); number && *number >= 0)
    to = static_cast<uint64_t>(*number);
  else if (auto text = value.value_exact<std::string>()) {
    auto bytes = parse_bytes(*text);
    if (!bytes)
      return bad_usage(name + ": [" + std::string(section) + "] bytes: " + bytes.error().text);
    to = *bytes;
  } else if (value)
    return bad_usage(name + ": [" + std::string(section) + "] bytes: expected a size such as \"4GiB\"");
  return {};
}

void read_paths(const toml::table& file, doctor_subject& subject) {
  if (const toml::array* listens = file["listen"].as_array()) {
    std::vector<std::string> sockets;
    for (const toml::node& each : *listens)
      if (const toml::table* listen = each.as_table())
        if (auto path = (*listen)["path"].value<std::string>())
          sockets.push_back(*path);
    if (!sockets.empty())
      subject.sockets = std::move(sockets);
  }
  auto path = file["disk"]["path"];
  if (auto one = path.value<std::string>(); one && *one != "auto")
    subject.disks = {*one};
  if (const toml::array* several = path.as_array()) {
    subject.disks.clear();
    for (const toml::node& each : *several)
      if (auto one = each.value<std::string>())
        subject.disks.push_back(*one);
  }
  subject.metrics = file["metrics"]["address"].value_or(subject.metrics);
}

} // namespace

outcome<doctor_subject> read_subject(std::string_view text, const std::string& file) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& problem) {
    return bad_usage(file + ": line " + std::to_string(problem.source().begin.line) + ": " +
                     std::string(problem.description()));
  }
  doctor_subject subject;
  read_paths(table, subject);
  if (auto read = read_size(table, "host", file, subject.host_bytes); !read)
    return tl::unexpected(read.error());
  if (auto read = read_size(table, "disk", file, subject.disk_bytes); !read)
    return tl::unexpected(read.error());
  if (subject.disk_bytes == 0)
    subject.disks.clear();
  return subject;
}

// ---- the command ----

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
                   "Configuration file of the daemon; by default /etc/terrace/terraced.toml if it exists, "
                   "else the daemon's "
                   "defaults");
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
  outcome<doctor_subject> read() const {
    std::string path = config_;
    if (path.empty() && std::filesystem::exists(installed_config))
      path = installed_config;
    if (path.empty())
      return doctor_subject{};
    std::ifstream file(path);
    std::stringstream text;
    if (!file || !(text << file.rdbuf()))
      return bad_usage(path + ": expected a readable configuration file");
    return read_subject(text.str(), path);
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
      fmt::print(to.out, "{} to fix before the daemon can start, {} to look at\n", failures, warnings);
  }

  std::string config_;
  bool unit_ = false;
  bool no_probe_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_doctor_command() { return std::make_unique<doctor_command>(); }

} // namespace terrace::cli
