// terrace sessions
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace terrace::cli {

namespace {

const char* mode_text(client::session_mode mode) {
  return mode == client::session_mode::held ? "held" : "tagged";
}

std::string format_sessions(const client::sessions_status& all) {
  std::string text =
      fmt::format("{} with {} of the daemon's memory; {} ended because there were too many\n"
                  "{} of host memory held by {} of them\n",
                  format_counted(all.count, "session"), readable_bytes(all.bytes), format_count(all.evicted),
                  readable_bytes(all.held_bytes), format_count(all.held));
  if (all.sessions.empty())
    return text;
  table rows({{"session", align::left},
              {"connection"},
              {"space"},
              {"turns"},
              {"tokens"},
              {"saved"},
              {"tail"},
              {"memory"},
              {"kept", align::left},
              {"mode", align::left},
              {"tokens held"},
              {"held"}});
  for (const client::session_status& one : all.sessions)
    rows.add({id_text(one.session.bytes),
              one.connection == connection_id{} ? "-" : std::to_string(static_cast<uint64_t>(one.connection)),
              std::to_string(one.space), format_count(one.generation - 1), format_count(one.committed_tokens),
              format_count(one.saved_tokens), format_count(one.tail_tokens), readable_bytes(one.bytes),
              one.keep ? "yes" : "no", mode_text(one.mode), format_count(one.held_tokens),
              readable_bytes(one.held_bytes)});
  text.append("\n").append(rows.to_string());
  if (all.sessions.size() < all.count)
    text += fmt::format("\n  and {} more\n", format_count(all.count - all.sessions.size()));
  return text;
}

json sessions_json(const client::sessions_status& all) {
  json sessions = json::array();
  for (const client::session_status& one : all.sessions)
    sessions.push_back({{"session", id_text(one.session.bytes)},
                        {"connection", static_cast<uint64_t>(one.connection)},
                        {"space", one.space},
                        {"keep", one.keep},
                        {"turns", one.generation - 1},
                        {"tokens", one.committed_tokens},
                        {"protected_tokens", one.protected_tokens},
                        {"allocated_tokens", one.allocated_tokens},
                        {"own_tokens", one.own_tokens},
                        {"saved_tokens", one.saved_tokens},
                        {"tail_tokens", one.tail_tokens},
                        {"bytes", one.bytes},
                        {"mode", mode_text(one.mode)},
                        {"held_tokens", one.held_tokens},
                        {"held_bytes", one.held_bytes}});
  return {{"count", all.count}, {"bytes", all.bytes},           {"evicted", all.evicted},
          {"held", all.held},   {"held_bytes", all.held_bytes}, {"sessions", sessions}};
}

class sessions_command final : public command {
 public:
  void declare(CLI::App& app) override {
    daemon_.declare(app);
    app.add_option("close", words_, "'close SESSION' closes one")->expected(0, 2);
  }

  outcome<exit_code> run(console& to) override {
    if (!words_.empty() && (words_.size() != 2 || words_.front() != "close"))
      return bad_usage("expected nothing, or 'close SESSION', got '" + words_.front() + "'" +
                       (words_.size() == 1 ? "" : " and more"));
    client::session_id id;
    if (!words_.empty()) {
      auto bytes = parse_id("a session", words_[1]);
      if (!bytes)
        return tl::unexpected(bytes.error());
      id.bytes = *bytes;
    }
    auto daemon = connect(daemon_, "terrace sessions");
    if (!daemon)
      return tl::unexpected(daemon.error());
    return words_.empty() ? show(*daemon, to) : close(*daemon, id, to);
  }

 private:
  outcome<exit_code> show(client::connection& daemon, console& to) {
    auto all = daemon.admin().sessions(daemon_.until());
    if (!all)
      return request_failed(daemon, "asking for the sessions", all.error());
    if (daemon_.json)
      print_json(to, sessions_json(*all));
    else
      to.print("{}", format_sessions(*all));
    return exit_code::ok;
  }

  outcome<exit_code> close(client::connection& daemon, const client::session_id& id, console& to) {
    auto closed = daemon.admin().close_session(id, daemon_.until());
    if (!closed)
      return request_failed(daemon, "closing the session", closed.error());
    if (daemon_.json)
      print_json(to, {{"session", id_text(id.bytes)}, {"closed", *closed}});
    else
      to.print("{}\n", *closed ? "the session is closed" : "there is no such session");
    return exit_code::ok;
  }

  daemon_options daemon_;
  std::vector<std::string> words_;
};

} // namespace

std::unique_ptr<command> make_sessions_command() { return std::make_unique<sessions_command>(); }

} // namespace terrace::cli
