// terrace lease revoke

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/json.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class lease_revoke_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("lease", lease_, "The lease, as `terrace leases` shows it")->required();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto id = parse_id("a lease", lease_);
    if (!id)
      return tl::unexpected(id.error());
    auto daemon = connect(daemon_, "terrace lease revoke", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto done = daemon->revoke(lease_id{*id}, daemon_.until());
    if (!done)
      return request_failed(*daemon, "revoking the lease", done.error());
    if (daemon_.json)
      print_json(to, {{"lease", id_text(*id)},
                      {"holders", done->holders},
                      {"quarantined_bytes", done->quarantined_bytes}});
    else
      fmt::print(to.out, "the lease is revoked; {} connections had it{}\n", format_count(done->holders),
                 done->quarantined_bytes == 0
                     ? std::string()
                     : ", and may be reading " + format_bytes(done->quarantined_bytes) +
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
