// terrace policies
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/policies_report.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

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
    auto status = daemon.policies(daemon_.until());
    if (!status)
      return request_failed(daemon, "asking for the policies", status.error());
    if (daemon_.json)
      print_json(to, to_json(*status));
    else
      fmt::print(to.out, "{}", format_policies(*status));
    return exit_code::ok;
  }

  outcome<exit_code> set(client::connection& daemon, console& to) {
    const std::string &tier = words_[1], &policy = words_[2];
    auto before = daemon.set_policy(tier, policy, daemon_.until());
    if (!before)
      return request_failed(daemon, "setting the policy of " + tier, before.error());
    if (daemon_.json)
      print_json(to, {{"tier", tier}, {"policy", policy}, {"before", *before}});
    else
      fmt::print(to.out, "the policy of {} is now {}; it was {}\n", tier, policy, *before);
    return exit_code::ok;
  }

  daemon_options daemon_;
  std::vector<std::string> words_;
};

} // namespace

std::unique_ptr<command> make_policies_command() { return std::make_unique<policies_command>(); }

} // namespace terrace::cli
