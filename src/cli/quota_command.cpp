// terrace quota

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/status_report.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <charconv>

namespace terrace::cli {

namespace {

/// Parses "25%" or "2GiB".
outcome<client::quota_amount> parse_amount(const std::string& text) {
  if (!text.ends_with('%')) {
    auto bytes = parse_bytes(text);
    if (!bytes)
      return tl::unexpected(bytes.error());
    return client::quota_amount{*bytes, false};
  }
  client::quota_amount part{0, true};
  const char* percent_sign = text.data() + text.size() - 1;
  auto [end, failed] = std::from_chars(text.data(), percent_sign, part.value);
  if (failed != std::errc() || end != percent_sign || part.value > 100)
    return bad_usage("expected 0% to 100%, got '" + text + "'");
  return part;
}

class quota_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("set", words_, "'set NAME' changes the quota with this name")->expected(0, 2);
    app.add_option("--tier", change_.tier, "The tier in which it is changed")
        ->check(CLI::IsMember({"host", "disk"}));
    app.add_option("--max", max_, "Upper bound, as \"2GiB\", \"25%\" or \"none\"");
    app.add_option("--guaranteed", guaranteed_,
                   "Share that eviction for others leaves, as \"1GiB\" or \"10%\"");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    bool sets = !words_.empty();
    if (sets && (words_.size() != 2 || words_.front() != "set"))
      return bad_usage("expected nothing, or 'set NAME' and what to change, got '" + words_.front() + "'");
    if (!sets && !(change_.tier.empty() && max_.empty() && guaranteed_.empty()))
      return bad_usage("expected 'set NAME' before what to change (see --help)");
    if (sets)
      if (auto read = read_change(); !read)
        return tl::unexpected(read.error());
    auto daemon = connect(daemon_, "terrace quota", !sets);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto tenants =
        sets ? daemon->admin().set_quota(change_, daemon_.until()) : daemon->admin().quotas(daemon_.until());
    if (!tenants)
      return request_failed(*daemon, sets ? "changing the quota" : "asking for the quotas", tenants.error());
    if (daemon_.json)
      print_json(to, {{"tenants", tenants_json(*tenants)}});
    else
      to.print("{}", tenants->empty() ? "no quotas are configured\n" : format_tenants(*tenants));
    return exit_code::ok;
  }

 private:
  outcome<void> read_change() {
    change_.name = words_.back();
    if (change_.tier.empty() || (max_.empty() && guaranteed_.empty()))
      return bad_usage("expected --tier, and --max or --guaranteed (see --help)");
    change_.unlimited = max_ == "none";
    if (!max_.empty() && !change_.unlimited) {
      auto amount = parse_amount(max_);
      if (!amount)
        return tl::unexpected(amount.error());
      change_.max = *amount;
    }
    if (!guaranteed_.empty()) {
      auto amount = parse_amount(guaranteed_);
      if (!amount)
        return tl::unexpected(amount.error());
      change_.guaranteed = *amount;
    }
    return {};
  }

  std::vector<std::string> words_;
  client::quota_change change_;
  std::string max_;
  std::string guaranteed_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_quota_command() { return std::make_unique<quota_command>(); }

} // namespace terrace::cli
