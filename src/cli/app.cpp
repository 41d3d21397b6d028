#include "cli/app.hpp"

#include "base/nearest_name.hpp"
#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace terrace::cli {

namespace {

// ---- the text of --help, and how numbers are read ----

/// "--clients N    Connections (1 to 256; default 1)": the value's kind beside the option, everything else about it behind
/// the description.
class help_format final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// CLI11's "UINT:1 to 4096" and "TEXT:{a,b}": the kind of value, and what is known about it.
struct value_type {
  std::string kind;
  std::string more;
};

value_type type_of(const CLI::Option& option) {
  std::string text = option.get_type_name();
  size_t colon = text.find(':');
  value_type type{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if (type.kind == "UINT" || type.kind == "INT")
    type.kind = "N";
  else if (type.kind == "FLOAT")
    type.kind = "NUMBER";
  if (type.more.starts_with('{') && type.more.ends_with('}')) { // the values that there are
    std::replace(type.more.begin(), type.more.end(), ',', '|');
    return {type.more.substr(1, type.more.size() - 2), ""};
  }
  return type;
}

/// Breaks lines between words, so that the help fits into 80 columns.
std::string wrapped(const std::string& text) {
  constexpr size_t width_max = 49; // CLI11's first column has 30
  std::string lines;
  size_t width = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    if (width != 0)
      lines += width + 1 + end - begin > width_max ? '\n' : ' ';
    width = !lines.empty() && lines.back() == '\n' ? 0 : width + (width != 0);
    lines.append(text, begin, end - begin);
    width += end - begin;
    begin = end + 1;
  }
  return lines;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::string names;
  for (const CLI::Option* option : options)
    names += (names.empty() ? "" : ", ") + option->get_name();
  return names;
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::string check_count(const std::string& text) {
  uint64_t count = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status == std::errc::result_out_of_range)
    return fmt::format("expected a number of at most {}, found \"{}\"", std::numeric_limits<uint64_t>::max(),
                       text);
  if (status != std::errc{} || end != text.data() + text.size())
    return fmt::format("expected a whole number of at least 0, found \"{}\"", text);
  return {};
}

/// Gives CLI11's Range, whose description is "INT in [1 - 64]", words of ours.
void reword_range(CLI::Validator& range) {
  std::string text = range.get_description();
  std::string bounds = text == "NONNEGATIVE" ? "at least 0" : text == "POSITIVE" ? "above 0" : "";
  double least = text == "POSITIVE" ? std::numeric_limits<double>::min() : 0,
         most = std::numeric_limits<double>::max();
  if (size_t open = text.find(" in ["); bounds.empty() && open != std::string::npos && text.ends_with(']')) {
    std::string inside = text.substr(open + 5, text.size() - open - 6);
    size_t dash = inside.find(" - ");
    least = *number_in(inside.substr(0, dash));
    most = *number_in(inside.substr(dash + 3));
    bounds = inside.substr(0, dash) + " to " + inside.substr(dash + 3);
  }
  if (bounds.empty())
    return; // another kind of check
  bool whole = !text.starts_with("FLOAT") && bounds.find(" to ") != std::string::npos;
  range.description(bounds).operation([bounds, least, most, whole](std::string& given) -> std::string {
    auto number = number_in(given);
    if (number && *number >= least && *number <= most && (!whole || *number == std::floor(*number)))
      return {};
    return fmt::format("expected {}{}, found \"{}\"", number ? "" : "a number, ", bounds, given);
  });
}

void check_numbers(CLI::Option& option) {
  std::string kind = option.get_type_name().substr(0, option.get_type_name().find(':'));
  for (int i = 0;; ++i) {
    try {
      reword_range(*option.get_validator(i));
    } catch (const CLI::OptionNotFound&) { // there are no more
      break;
    }
  }
  if (kind == "UINT")
    option.check(check_count, "");
  else if (kind == "FLOAT")
    option.check(
        [](const std::string& text) {
          return number_in(text) ? std::string() : fmt::format("expected a number, found \"{}\"", text);
        },
        "");
}

/// CLI11 writes "--no-colour{false}" for a flag that sets its variable to false.
std::string help_format::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string names = CLI::Formatter::make_option_name(option, is_positional);
  for (size_t open = names.find('{'); open != std::string::npos; open = names.find('{', open))
    names.erase(open, names.find('}', open) == std::string::npos ? std::string::npos
                                                                 : names.find('}', open) + 1 - open);
  return names;
}

std::string help_format::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0)
    return {}; // a flag
  return " " + type_of(*option).kind +
         (option->get_expected_max() == CLI::detail::expected_max_vector_size ? " ..." : "");
}

std::string help_format::make_option_desc(const CLI::Option* option) const {
  std::vector<std::string> facts;
  if (option->get_required())
    facts.emplace_back("required");
  if (option->get_type_size() != 0 && !type_of(*option).more.empty())
    facts.push_back(type_of(*option).more);
  if (std::string value = option->get_default_str(); option->get_type_size() != 0 && !value.empty())
    facts.push_back("default " + value);
  if (!option->get_envname().empty())
    facts.push_back("or set " + option->get_envname());
  if (!option->get_needs().empty())
    facts.push_back("needs " + names_of(option->get_needs()));
  if (!option->get_excludes().empty())
    facts.push_back("not with " + names_of(option->get_excludes()));
  std::string text = option->get_description();
  if (!facts.empty() && text.ends_with(')')) // one pair of parentheses
    return wrapped(fmt::format("{}; {})", text.substr(0, text.size() - 1), fmt::join(facts, "; ")));
  return wrapped(facts.empty() ? text : fmt::format("{} ({})", text, fmt::join(facts, "; ")));
}

/// Adds to each option of a number what CLI11 does not check: counts are not negative and fit, and no number is infinite or
/// none. Messages say what was expected and what was found. Call this after the command has declared its options.
void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options({}))
    check_numbers(*option);
}

constexpr const char* description =
    "terrace controls and monitors terraced, the KV-cache daemon of this machine.";
constexpr const char* footer =
    "\nExamples:\n"
    "  terrace status                          show tiers, spaces and clients of the daemon\n"
    "  terrace trace generate -o trace.jsonl   generate a workload\n"
    "  terrace replay trace.jsonl              run it against the daemon and check every byte\n"
    "\nThe options --socket, --timeout and --json may be given before or after the command.\n"
    "See `terrace help COMMAND`. Exit codes: 0 success, 1 failure, 2 bad input, 3 no daemon,\n"
    "4 damaged volume, 141 the reader of the output has left.\n";

struct declared_command {
  CLI::App* app;
  std::unique_ptr<command> made;
};

std::string about(const std::string& group) {
  if (group == "remote")
    return "Commands for the store of a remote tier";
  return group == "disk" ? "Commands for the file of a disk tier that no daemon has open"
                         : "Commands for " + group + "s";
}

/// Adds a command. "trace generate" goes into the group "trace", which is created when first used.
CLI::App* add_command(CLI::App& root, const command_entry& entry) {
  std::string name = entry.name;
  CLI::App* parent = &root;
  const std::string examples(entry.examples);
  if (size_t space = name.find(' '); space != std::string::npos) {
    std::string group = name.substr(0, space);
    name = name.substr(space + 1);
    auto groups = root.get_subcommands([&](CLI::App* app) { return app->get_name() == group; });
    if (groups.empty()) {
      parent = root.add_subcommand(group, about(group));
      parent->footer("\nExamples:\n");
    } else {
      parent = groups.front();
    }
    parent->footer(parent->get_footer() + examples);
    parent->require_subcommand(1);
  }
  CLI::App* app = parent->add_subcommand(name, entry.summary);
  app->footer("\nExamples:\n" + examples);
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

/// `; did you mean "status"?` for a word that resembles one of the names, otherwise nothing.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string_view nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string unknown_option(const std::string& word, CLI::App& at) {
  std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : at.get_options({}))
    for (const std::string& known : option->get_lnames())
      names.push_back("--" + known);
  return fmt::format("unknown option \"{}\"{}", name, suggestion(name, names));
}

/// A text for what CLI11 did not understand, where it says only that it did not.
std::optional<std::string> explain_word(CLI::App& root, bool expects_command) {
  CLI::App* at = innermost(root);
  std::vector<std::string> rest = root.remaining(true);
  if (!rest.empty() && rest.front().starts_with('-') && rest.front() != "-")
    return unknown_option(rest.front(), *at);
  if (!expects_command)
    return rest.empty() ? std::optional<std::string>()
                        : fmt::format("unexpected argument \"{}\"", rest.front());
  std::string known = fmt::format("expected a command ({})", fmt::join(command_names(*at), ", "));
  if (rest.empty())
    return known;
  std::string text = unknown_command(rest.front(), *at);
  return text.find("did you mean") == std::string::npos ? known + ", found \"" + rest.front() + "\"" : text;
}

/// Returns what was expected, reworded where CLI11's text does not say it.
std::string explain(const CLI::ParseError& e, CLI::App& root) {
  std::string text = e.what();
  bool expects_command =
      dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && !innermost(root)->get_subcommands({}).empty();
  if (expects_command || dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr)
    if (auto word = explain_word(root, expects_command))
      return *word;
  constexpr std::string_view conversion = "Could not convert: "; // only numbers are converted
  if (size_t equals = text.find(" = "); text.starts_with(conversion) && equals != std::string::npos) {
    std::string number = text.substr(equals + 3);
    bool digits = number.find_first_not_of("0123456789") == std::string::npos;
    return fmt::format("{}: expected a {}number, found \"{}\"",
                       text.substr(conversion.size(), equals - conversion.size()), digits ? "smaller " : "",
                       number);
  }
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

std::vector<std::string> command_names(const CLI::App& group) {
  std::vector<std::string> names;
  for (const CLI::App* app : group.get_subcommands({}))
    names.push_back(app->get_name());
  return names;
}

std::string unknown_command(const std::string& word, const CLI::App& group) {
  std::string text = fmt::format("expected a command, found \"{}\"", word);
  for (const CLI::App* app : group.get_subcommands({}))
    for (const std::string& name : command_names(*app))
      if (name == word)
        return fmt::format("{}; did you mean \"{} {}\"?", text, app->get_name(), name);
  return text + suggestion(word, command_names(group));
}

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
