// terrace remote status
#include "base/tier_properties.hpp"
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

double remote_ns(std::chrono::nanoseconds time) { return static_cast<double>(time.count()); }

std::string format_memory(const client::remote_state& remote) {
  if (!remote.memory)
    return "not known: " + remote.memory_refused;
  return readable_bytes(remote.used_bytes) + " of " +
         (remote.max_bytes == 0 ? "no bound" : readable_bytes(remote.max_bytes)) + ", " + remote.policy;
}

std::string format_misses(const client::remote_state& remote) {
  std::string text;
  for (const auto& [reason, count] : remote.misses)
    text += (text.empty() ? "" : ", ") + format_count(count) + " " + reason;
  return text.empty() ? "none" : text;
}

/// Empty: replicas are not read.
std::string format_replica_reads(const client::remote_state& remote) {
  if (!remote.replica_reads)
    return {};
  const auto& reads = *remote.replica_reads;
  return "; " + format_counted(reads.read, "object") + " from replicas, " +
         format_count(reads.asked_primary + reads.damaged) + " from their primaries instead (" +
         format_count(reads.damaged) + " damaged)";
}

std::string format_remote(const client::remote_state& remote) {
  const double since = remote_ns(remote.since);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"tier", remote.tier},
      {"store", remote.address + ", keys begin with " + remote.prefix},
      {"state", remote.state + " since " + format_duration(since)}};
  auto add = [&](const char* name, const std::string& text) {
    if (!text.empty())
      facts.emplace_back(name, text);
  };
  add("reason", remote.reason);
  add("notice", remote.notice);
  add("values", std::string(remote.encrypted ? "encrypted (AES-256-GCM)" : "not encrypted") +
                    (remote.compressed ? ", compressed (zstd)" : ""));
  for (const client::remote_node& node : remote.nodes)
    add(node.replica ? "replica" : "node", node.address + ", " + node.state + ", " +
                                               format_counted(node.slots, "slot") +
                                               (node.reason.empty() ? "" : ": " + node.reason));
  add("server", remote.server.empty() ? remote.server : remote.server + " " + remote.version);
  if (remote.state == "ready")
    add("changes", remote.tells_changes ? "told by the server"
                                        : "not told: what is known of a key holds for 5 s to a minute");
  if (remote.answers != 0)
    add("latency", format_duration(remote_ns(remote.mean_answer)) + " on average, " +
                       format_duration(remote_ns(remote.slowest_answer)) + " at most, of the last " +
                       format_counted(remote.answers, "answer"));
  if (remote.hedges)
    add("hedged", format_counted(remote.hedges->sent, "request") + " sent a second time, " +
                      format_count(remote.hedges->won) + " of them answered by the second one first");
  add("read", readable_bytes(remote.read_bytes) + format_replica_reads(remote));
  add("written", readable_bytes(remote.written_bytes) +
                     (remote.compressed ? ", as " + readable_bytes(remote.stored_bytes) : ""));
  add("misses", format_misses(remote));
  if (remote.owed_clears != 0)
    add("clears", format_counted(remote.owed_clears, "clear") +
                      " the store has not been told of: remembered, and told when it answers");
  add("memory", format_memory(remote));
  for (const std::string& warning : remote.warnings)
    add("warning", warning);
  return format_facts(facts);
}

json remote_json(const client::remote_state& remote) {
  json made = {{"tier", remote.tier},
               {"address", remote.address},
               {"prefix", remote.prefix},
               {"encrypted", remote.encrypted},
               {"compressed", remote.compressed},
               {"state", remote.state},
               {"since_s", remote.since.count()},
               {"reason", remote.reason},
               {"notice", remote.notice},
               {"warnings", remote.warnings},
               {"server", remote.server},
               {"version", remote.version},
               {"tells_changes", remote.tells_changes},
               {"answers", remote.answers},
               {"answer_mean_ns", remote.mean_answer.count()},
               {"answer_slowest_ns", remote.slowest_answer.count()},
               {"read_bytes", remote.read_bytes},
               {"written_bytes", remote.written_bytes},
               {"stored_bytes", remote.stored_bytes},
               {"misses", remote.misses},
               {"owed_clears", remote.owed_clears}};
  for (const client::remote_node& node : remote.nodes)
    made["nodes"].push_back({{"address", node.address},
                             {"state", node.state},
                             {"reason", node.reason},
                             {"slots", node.slots},
                             {"replica", node.replica}});
  if (remote.hedges)
    made["hedges"] = {{"sent", remote.hedges->sent}, {"won", remote.hedges->won}};
  if (remote.replica_reads)
    made["replica_reads"] = {{"read", remote.replica_reads->read},
                             {"asked_primary", remote.replica_reads->asked_primary},
                             {"damaged", remote.replica_reads->damaged}};
  if (remote.memory)
    made["memory"] = {
        {"used_bytes", remote.used_bytes}, {"max_bytes", remote.max_bytes}, {"policy", remote.policy}};
  else
    made["memory_refused"] = remote.memory_refused;
  return made;
}

class remote_status_command final : public command {
 public:
  void declare(CLI::App& app) override { daemon_.declare(app); }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace remote status", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto remotes = daemon->admin().remote_status(daemon_.until());
    if (!remotes)
      return request_failed(*daemon, "asking for the remote tier", remotes.error());
    if (daemon_.json) {
      json all = json::array();
      for (const client::remote_state& each : *remotes)
        all.push_back(remote_json(each));
      print_json(to, {{"remotes", all}});
      return exit_code::ok;
    }
    if (remotes->empty())
      to.print("no remote tier is configured; a [[remote]] section adds one\n");
    for (const client::remote_state& each : *remotes)
      to.print("{}{}", &each == &remotes->front() ? "" : "\n", format_remote(each));
    return exit_code::ok;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_remote_status_command() { return std::make_unique<remote_status_command>(); }

// terrace remote probe

namespace {

void declare_remote_tier(CLI::App& app, std::string& tier, const char* help) {
  std::vector<std::string> names;
  for (tier_kind each : remote_tiers)
    names.emplace_back(to_string(each));
  app.add_option("--tier", tier, help)->check(CLI::IsMember(names))->capture_default_str();
}

class remote_probe_command final : public command {
 public:
  void declare(CLI::App& app) override {
    declare_remote_tier(app, tier_, "The remote tier whose store is asked");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace remote probe", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto probed = daemon->admin().remote_probe(*tier_named(tier_), daemon_.until()); // validated
    if (!probed)
      return request_failed(*daemon, "probing the store", probed.error());
    const bool works = !probed->steps.empty() && probed->steps.back().failure.empty();
    if (daemon_.json) {
      json steps = json::array();
      for (const client::remote_step& step : probed->steps)
        steps.push_back({{"step", step.name}, {"ns", step.took.count()}, {"failure", step.failure}});
      print_json(to, {{"address", probed->address}, {"works", works}, {"steps", steps}});
    } else {
      table rows({{"step", align::left}, {"time"}, {"", align::left}});
      for (const client::remote_step& step : probed->steps)
        rows.add({step.name, format_duration(remote_ns(step.took)),
                  step.failure.empty() ? "done" : "failed: " + step.failure});
      to.print("the store at {}\n\n{}", probed->address, rows.to_string());
    }
    return works ? exit_code::ok : exit_code::failed;
  }

 private:
  std::string tier_ = to_string(remote_tiers.front());
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_remote_probe_command() { return std::make_unique<remote_probe_command>(); }

// terrace remote sweep

namespace {

class remote_sweep_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--dry-run", what_.dry_run, "Only count what would be removed");
    app.add_option("--rate", what_.keys_per_s, "Keys that the store is asked for in a second (default 20000)")
        ->check(CLI::Range(1U, 10'000'000U));
    declare_remote_tier(app, tier_, "The remote tier whose store is swept");
    daemon_.timeout_s = 3'600;
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace remote sweep", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    what_.tier = *tier_named(tier_); // validated
    auto swept = daemon->admin().remote_sweep(what_, daemon_.until());
    if (!swept)
      return request_failed(*daemon, "sweeping the store", swept.error());
    if (daemon_.json)
      print_json(to, {{"address", swept->address},
                      {"dry_run", what_.dry_run},
                      {"keys", swept->keys},
                      {"current", swept->current},
                      {"unknown", swept->unknown},
                      {"removed", what_.dry_run ? 0 : swept->stale},
                      {"stale", swept->stale},
                      {"stale_bytes", swept->stale_bytes}});
    else
      to.print("{}", format_facts({{"store", swept->address},
                                   {"looked at", format_counted(swept->keys, "key")},
                                   {"in use", format_counted(swept->current, "value")},
                                   {"not known", format_counted(swept->unknown, "value") +
                                                     ", of Redis clients or of spaces without a token"},
                                   {what_.dry_run ? "left behind" : "removed",
                                    format_counted(swept->stale, "value") + ", " +
                                        readable_bytes(swept->stale_bytes)}}));
    return exit_code::ok;
  }

 private:
  std::string tier_ = to_string(remote_tiers.front());
  client::remote_sweep_request what_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_remote_sweep_command() { return std::make_unique<remote_sweep_command>(); }

} // namespace terrace::cli
