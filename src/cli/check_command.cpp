// terrace check

#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

std::string format_check(const client::check_result& found) {
  std::string text =
      fmt::format("{} objects, {} sessions and {} connections were counted again\n\n",
                  format_count(found.objects), format_count(found.sessions), format_count(found.connections));
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
  text += fmt::format("{} differences\n", format_count(found.count));
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
    auto found = daemon->check(daemon_.until());
    if (!found)
      return request_failed(*daemon, "checking", found.error());
    if (daemon_.json)
      print_json(to, check_json(*found));
    else
      fmt::print(to.out, "{}", format_check(*found));
    return found->count == 0 ? exit_code::ok : exit_code::failed;
  }

 private:
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_check_command() { return std::make_unique<check_command>(); }

} // namespace terrace::cli
