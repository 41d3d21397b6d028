// terrace leases
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

namespace terrace::cli {

namespace {

using names_by_connection = std::map<connection_id, std::string>;

std::string format_leases(const client::leases_status& all, const names_by_connection& names) {
  std::string text = format_counted(all.count, "lease") + "\n";
  if (all.leases.empty())
    return text;
  table rows({{"lease", align::left},
              {"client"},
              {"name", align::left},
              {"age"},
              {"space"},
              {"chunks"},
              {"tokens"},
              {"bytes"},
              {"", align::left}});
  for (const client::lease_status& one : all.leases) {
    auto name = names.find(one.connection);
    rows.add({id_text(one.lease.bytes),
              one.connection == connection_id{} ? "-" : std::to_string(static_cast<uint64_t>(one.connection)),
              name == names.end() ? "-" : name->second,
              format_duration(static_cast<double>(one.age.count()) * 1e6), std::to_string(one.space),
              format_count(one.chunks), format_count(one.tokens), readable_bytes(one.bytes),
              one.revoked                         ? "revoked"
              : one.connection == connection_id{} ? "pinned"
                                                  : ""});
  }
  text.append("\n").append(rows.to_string());
  if (all.leases.size() < all.count)
    text += fmt::format("\n  and {} more, see --limit\n", format_count(all.count - all.leases.size()));
  return text;
}

json leases_json(const client::leases_status& all, const names_by_connection& names) {
  json leases = json::array();
  for (const client::lease_status& one : all.leases) {
    auto name = names.find(one.connection);
    leases.push_back({{"lease", id_text(one.lease.bytes)},
                      {"number", one.number},
                      {"connection", static_cast<uint64_t>(one.connection)},
                      {"name", name == names.end() ? "" : name->second},
                      {"age_ms", one.age.count()},
                      {"space", one.space},
                      {"chunks", one.chunks},
                      {"tokens", one.tokens},
                      {"bytes", one.bytes},
                      {"pinned", one.connection == connection_id{}},
                      {"revoked", one.revoked}});
  }
  return {{"count", all.count}, {"leases", leases}};
}

class leases_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--limit", limit_, "List at most this many, the oldest first")->capture_default_str();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace leases", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    client::leases_status all;
    uint64_t after = 0;
    bool more = true;
    while (more) { // asks in parts, because a long list does not fit in an answer
      auto part = daemon->admin().leases(after, daemon_.until());
      if (!part)
        return request_failed(*daemon, "asking for the leases", part.error());
      all.count = part->count;
      more = !part->leases.empty();
      if (more)
        after = part->leases.back().number;
      all.leases.insert(all.leases.end(), part->leases.begin(), part->leases.end());
      more = more && all.leases.size() < std::min<uint64_t>(limit_, all.count);
    }
    all.leases.resize(std::min<uint64_t>(all.leases.size(), limit_));
    auto status = daemon->admin().status(daemon_.until());
    if (!status)
      return request_failed(*daemon, "asking for the clients", status.error());
    names_by_connection names;
    for (const client::client_status& one : status->clients)
      names[one.connection] = one.name;
    if (daemon_.json)
      print_json(to, leases_json(all, names));
    else
      to.print("{}", format_leases(all, names));
    return exit_code::ok;
  }

 private:
  uint64_t limit_ = 100;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_leases_command() { return std::make_unique<leases_command>(); }

// terrace lease revoke

namespace {

constexpr const char* lists_them = "; `terrace leases` lists the ids";

class lease_revoke_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("lease", lease_, "The lease, as `terrace leases` shows it")->required();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto id = parse_id("a lease", lease_);
    if (!id)
      return bad_usage(id.error().text + lists_them);
    auto daemon = connect(daemon_, "terrace lease revoke", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto done = daemon->admin().revoke(lease_id{*id}, daemon_.until());
    if (!done && done.error().code == errc::not_found)
      done.error().text += lists_them;
    if (!done)
      return request_failed(*daemon, "revoking the lease", done.error());
    if (daemon_.json)
      print_json(to, {{"lease", id_text(*id)},
                      {"holders", done->holders},
                      {"quarantined_bytes", done->quarantined_bytes}});
    else
      to.print("the lease is revoked; {} had it{}\n", format_counted(done->holders, "connection"),
               done->quarantined_bytes == 0
                   ? std::string()
                   : ", and may be reading " + readable_bytes(done->quarantined_bytes) +
                         ", which are kept until they release the lease or end");
    return exit_code::ok;
  }

 private:
  std::string lease_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_lease_revoke_command() { return std::make_unique<lease_revoke_command>(); }

} // namespace terrace::cli
