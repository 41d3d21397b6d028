// terrace clear
#include "base/tier_properties.hpp"
#include "cli/command.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/prompt_options.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class clear_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--all", all_, "Clear everything of the socket's trust group, in memory and on disk");
    app.add_flag("--yes", yes_, "Do not ask before --all");
    space_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    if (all_ == space_.given())
      return bad_usage(
          "expected either --all, or --space or the fields of one space (see terrace clear --help)");
    if (!all_)
      if (auto understood = space_.check(); !understood)
        return tl::unexpected(understood.error());
    auto daemon = connect(daemon_, "terrace clear");
    if (!daemon)
      return tl::unexpected(daemon.error());
    std::optional<client::space> space;
    if (all_) {
      if (auto agreed =
              confirm_on_terminal(to, "everything that this trust group has cached will be removed", yes_);
          !agreed)
        return tl::unexpected(agreed.error());
    } else {
      auto opened = space_.open(*daemon, daemon_);
      if (!opened)
        return tl::unexpected(opened.error());
      space = *opened;
    }
    auto cleared = daemon->admin().clear(space ? &*space : nullptr, daemon_.until());
    if (!cleared)
      return request_failed(*daemon, "clearing", cleared.error());
    const auto waits = waiting_store(*daemon);
    if (daemon_.json) {
      json made{{"objects", cleared->objects}, {"bytes", cleared->bytes}};
      if (waits)
        made["waits_for"] = {{"address", waits->address}, {"state", waits->state}, {"reason", waits->reason}};
      print_json(to, made);
      return exit_code::ok;
    }
    std::vector<std::pair<std::string, std::string>> facts{
        {"cleared", format_counted(cleared->objects, "object") + ", counted once per tier"},
        {"freed", readable_bytes(cleared->bytes)}};
    if (waits)
      facts.emplace_back("waits",
                         fmt::format("the store at {} {}: the clear is remembered, and reaches it and the "
                                     "machines that share it when it answers{}",
                                     waits->address, waits->state == "ready" ? "refuses it" : "is away",
                                     waits->reason.empty() ? "" : " (" + waits->reason + ")"));
    to.print("{}", format_facts(facts));
    return exit_code::ok;
  }

 private:
  /// The remote store that has not been told of a clear; none: it has been told, or there is none. A daemon that does not tell
  /// is an older one.
  std::optional<client::remote_state> waiting_store(client::connection& daemon) {
    auto remotes = daemon.admin().remote_status(daemon_.until());
    if (remotes)
      for (client::remote_state& each : *remotes)
        if (each.owed_clears != 0)
          return std::move(each);
    return std::nullopt;
  }

  bool all_ = false;
  bool yes_ = false;
  space_options space_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_clear_command() { return std::make_unique<clear_command>(); }

// terrace evict

namespace {

class evict_command final : public command {
 public:
  void declare(CLI::App& app) override {
    std::vector<std::string> names;
    for (tier_kind tier : all_tiers)
      names.emplace_back(to_string(tier));
    app.add_option("--tier", tier_, "Remove from this tier only")->check(CLI::IsMember(names));
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace evict");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::prompt_request request{space, prompt_.what(), 0, {}};
    if (!tier_.empty()) {
      request.tiers = 1U << static_cast<unsigned>(*tier_named(tier_)); // validated
    }
    auto done = daemon.admin().evict(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "evicting the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"objects", done->objects}, {"bytes", done->bytes}});
    else
      to.print("{}",
               format_facts({{"evicted", format_counted(done->objects, "object") + ", counted once per tier"},
                             {"freed", readable_bytes(done->bytes)}}));
    return exit_code::ok;
  }

 private:
  std::string tier_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_evict_command() { return std::make_unique<evict_command>(); }

// terrace move

namespace {

class move_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--to", to_, "The tier that gets the prompt's chunks")
        ->check(CLI::IsMember({"gpu", "host", "disk"}))
        ->required();
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace move");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    auto done = daemon.admin().move({space, prompt_.what(), 0, {}}, *tier_named(to_), daemon_.until());
    if (!done)
      return request_failed(daemon, "moving the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"to", to_},
                      {"requested_chunks", done->requested_chunks},
                      {"moved", share(done->moved)},
                      {"present", share(done->present)},
                      {"missing", share(done->missing)},
                      {"held", share(done->held)},
                      {"failed", share(done->failed)}});
    else
      to.print("{}", format_facts({{"requested", format_counted(done->requested_chunks, "chunk")},
                                   {"moved", text(done->moved)},
                                   {"already there", text(done->present)},
                                   {"not found", text(done->missing)},
                                   {"held", text(done->held)},
                                   {"failed", text(done->failed)}}));
    return exit_code::ok;
  }

 private:
  static json share(const client::move_share& one) { return {{"chunks", one.chunks}, {"bytes", one.bytes}}; }
  static std::string text(const client::move_share& one) {
    return format_counted(one.chunks, "chunk") + ", " + readable_bytes(one.bytes);
  }

  std::string to_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_move_command() { return std::make_unique<move_command>(); }

// terrace pin, terrace unpin

namespace {

class pin_command final : public command {
 public:
  explicit pin_command(bool ends) : ends_(ends) {}

  void declare(CLI::App& app) override {
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, ends_ ? "terrace unpin" : "terrace pin");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::prompt_request request{space, prompt_.what(), 0, {}};
    return ends_ ? unpin(daemon, request, to) : pin(daemon, request, to);
  }

 private:
  outcome<exit_code> pin(client::connection& daemon, const client::prompt_request& request, console& to) {
    auto done = daemon.admin().pin(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "pinning the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"requested_chunks", done->requested_chunks},
                      {"pinned_chunks", done->pinned_chunks},
                      {"tokens", done->tokens},
                      {"bytes", done->bytes},
                      {"lease", done->pinned_chunks == 0 ? "" : id_text(done->lease.bytes)}});
    else if (done->pinned_chunks == 0)
      to.print("nothing of the prompt is cached, so nothing is pinned\n");
    else
      to.print("pinned {}: {}, {}\n", format_part(done->pinned_chunks, done->requested_chunks, "chunk"),
               format_counted(done->tokens, "token"), readable_bytes(done->bytes));
    return exit_code::ok;
  }

  outcome<exit_code> unpin(client::connection& daemon, const client::prompt_request& request, console& to) {
    auto done = daemon.admin().unpin(request, daemon_.until());
    if (!done)
      return request_failed(daemon, "unpinning the prompt", done.error());
    if (daemon_.json)
      print_json(to, {{"pins", done->pins}, {"bytes", done->bytes}});
    else if (done->pins == 0)
      to.print("the prompt was not pinned\n");
    else
      to.print("the prompt is unpinned: {} can be evicted\n", readable_bytes(done->bytes));
    return exit_code::ok;
  }

  bool ends_;
  prompt_options prompt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_pin_command() { return std::make_unique<pin_command>(false); }
std::unique_ptr<command> make_unpin_command() { return std::make_unique<pin_command>(true); }

} // namespace terrace::cli
