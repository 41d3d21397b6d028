#include "cli/app.hpp"

#include "cli/command.hpp"
#include "cli/help_format.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

namespace terrace::cli {

namespace {

constexpr const char* description =
    "terrace controls and monitors terraced, the KV-cache daemon of this machine.";
constexpr const char* footer =
    "\nExamples:\n"
    "  terrace status                          show tiers, spaces and clients of the daemon\n"
    "  terrace trace generate -o trace.jsonl   generate a workload\n"
    "  terrace replay trace.jsonl              run it against the daemon and check every byte\n"
    "\nThe options --socket, --timeout and --json may be given before or after the command.\n"
    "See `terrace COMMAND --help`. Exit codes: 0 success, 1 failure, 2 bad input, 3 no daemon,\n"
    "4 damaged volume, 141 the reader of the output has left.\n";

struct declared_command {
  CLI::App* app;
  std::unique_ptr<command> made;
};

std::string about(const std::string& group) {
  return group == "disk" ? "Commands for the file of a disk tier that no daemon has open"
                         : "Commands for " + group + "s";
}

/// Adds a command. "trace generate" goes into the group "trace", which is created when first used.
CLI::App* add_command(CLI::App& root, const command_entry& entry) {
  std::string name = entry.name;
  CLI::App* parent = &root;
  if (size_t space = name.find(' '); space != std::string::npos) {
    std::string group = name.substr(0, space);
    name = name.substr(space + 1);
    auto groups = root.get_subcommands([&](CLI::App* app) { return app->get_name() == group; });
    parent = groups.empty() ? root.add_subcommand(group, about(group)) : groups.front();
    parent->require_subcommand(1);
  }
  CLI::App* app = parent->add_subcommand(name, entry.summary);
  app->footer("\nExamples:\n" + std::string(entry.examples));
  return app;
}

/// Returns the path of the innermost given command, so that its own --help is mentioned.
std::string path_of(CLI::App& root) {
  std::string path = "terrace";
  for (CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

CLI::App* innermost(CLI::App& root) {
  CLI::App* at = &root;
  while (!at->get_subcommands().empty())
    at = at->get_subcommands().front();
  return at;
}

std::string known_commands(CLI::App& group) {
  std::string names;
  for (CLI::App* app : group.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + app->get_name();
  return names;
}

/// Returns what was expected, reworded where CLI11's text does not say it.
std::string explain(const CLI::ParseError& e, CLI::App& root) {
  std::string text = e.what();
  CLI::App* at = innermost(root);
  if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && !at->get_subcommands({}).empty()) {
    std::vector<std::string> rest = root.remaining(true);
    return fmt::format("expected a command ({}){}", known_commands(*at),
                       rest.empty() ? "" : ", found \"" + rest.front() + "\"");
  }
  constexpr std::string_view conversion = "Could not convert: "; // only numbers are converted
  if (size_t equals = text.find(" = "); text.starts_with(conversion) && equals != std::string::npos)
    return fmt::format("{}: expected a number, found \"{}\"",
                       text.substr(conversion.size(), equals - conversion.size()), text.substr(equals + 3));
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(" .") + 1);
  return text;
}

/// `terrace --socket PATH status` means `terrace status --socket PATH`: the options of the daemon may come
/// first.
std::vector<std::string> with_command_first(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size()) {
    bool with_value = words[at] == "--socket" || words[at] == "--timeout";
    if (!with_value && words[at] != "--json" && !words[at].starts_with("--socket=") &&
        !words[at].starts_with("--timeout="))
      break;
    at += with_value ? 2 : 1;
  }
  if (at >= words.size() || words[at].starts_with('-'))
    return words;
  std::vector<std::string> moved(words.begin() + static_cast<ptrdiff_t>(at), words.end());
  moved.insert(moved.end(), words.begin(), words.begin() + static_cast<ptrdiff_t>(at));
  return moved;
}

/// A reader that has left, as of `| head`, wants no message.
outcome<exit_code> output_failure(const output_lost& lost) {
  if (lost.number == EPIPE)
    return exit_code::reader_left;
  return failed(std::string("standard output cannot be written: ") + std::strerror(lost.number));
}

/// Runs a command. What it printed has reached the reader, or the outcome says that it has not.
outcome<exit_code> run_to_end(command& made, console& to) {
  try {
    auto ended = made.run(to);
    if (ended)
      to.flush();
    return ended;
  } catch (const output_lost& lost) {
    return output_failure(lost);
  }
}

exit_code report(const failure& f, const std::string& path, console& to) {
  to.note("{}: {}\n", path, f.text);
  return f.code;
}

exit_code show(const std::string& text, console& to) {
  try {
    to.print("{}", text);
    to.flush();
    return exit_code::ok;
  } catch (const output_lost& lost) {
    auto ended = output_failure(lost);
    return ended ? *ended : report(ended.error(), "terrace", to);
  }
}

} // namespace

exit_code run_app(const std::vector<std::string>& words, console& to) {
  CLI::App root(description, "terrace");
  root.footer(footer);
  root.formatter(std::make_shared<help_format>()); // commands inherit it
  root.set_version_flag("--version", "terrace " TERRACE_VERSION, "Print the version and exit");
  root.require_subcommand(1);
  std::vector<declared_command> declared;
  for (const command_entry& entry : commands()) {
    declared.push_back({add_command(root, entry), entry.make()});
    declared.back().made->declare(*declared.back().app);
    check_numbers(*declared.back().app);
  }
  try {
    std::vector<std::string> ordered = with_command_first(words);
    std::reverse(ordered.begin(), ordered.end()); // CLI11 takes words from the back
    root.parse(ordered);
  } catch (const CLI::Success& asked) { // --help or --version
    std::ostringstream text;
    root.exit(asked, text, text);
    return show(text.str(), to);
  } catch (const CLI::ParseError& e) {
    std::string path = path_of(root);
    return report({exit_code::usage, explain(e, root) + " (see " + path + " --help)"}, path, to);
  }
  for (declared_command& candidate : declared) {
    if (!candidate.app->parsed())
      continue;
    auto ended = run_to_end(*candidate.made, to);
    return ended ? *ended : report(ended.error(), path_of(root), to);
  }
  return exit_code::usage; // not reached: a command is required
}

} // namespace terrace::cli
