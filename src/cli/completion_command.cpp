// terrace completion: scripts for shells, made from the table of commands.
#include "cli/app.hpp"
#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace terrace::cli {

namespace {

struct completed_option {
  std::vector<std::string> names; ///< "--output", "-o"
  std::string about;
  bool has_value = false;
  std::vector<std::string> values; ///< empty: any
};

/// The program, a group or a command: what may stand behind it.
struct completed_command {
  std::string path; ///< "trace generate", empty for the program
  std::string about;
  std::vector<std::string> commands; ///< below it
  std::vector<std::string> words;    ///< values of its argument, if not any
  std::vector<completed_option> options;
};

/// The first line; a description may have more.
std::string line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The words of CLI11's "TEXT:{auto,mapped}".
std::vector<std::string> values_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  size_t open = type.find('{');
  std::vector<std::string> values;
  if (open == std::string::npos || !type.ends_with('}'))
    return values;
  for (size_t at = open + 1; at < type.size();) {
    size_t end = type.find_first_of(",}", at);
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

void collect(const CLI::App& app, const std::string& path, std::vector<completed_command>& all) {
  completed_command found{path, line_of(app.get_description()), command_names(app), {}};
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); }))
    found.words = values_of(*option);
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
    completed_option one{
        {}, line_of(option->get_description()), option->get_type_size() != 0, values_of(*option)};
    for (const std::string& name : option->get_lnames())
      one.names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      one.names.push_back("-" + name);
    found.options.push_back(std::move(one));
  }
  all.push_back(std::move(found));
  for (const CLI::App* below : app.get_subcommands({}))
    collect(*below, path.empty() ? below->get_name() : path + " " + below->get_name(), all);
}

/// Between single quotes.
std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// The patterns by which a script follows the words before the cursor: "PATH OF THE GROUP" and the next word.
std::vector<std::string> patterns_of(const std::vector<completed_command>& all) {
  std::vector<std::string> patterns;
  for (const completed_command& one : all)
    if (!one.path.empty())
      patterns.push_back(quoted((one.path.find(' ') == std::string::npos ? " " : "") + one.path));
  return patterns;
}

std::vector<std::string> names_of(const completed_command& one) {
  std::vector<std::string> names;
  for (const completed_option& option : one.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Lines of a `case` for the values of options; `complete` makes the command from the words.
template <class Complete>
std::string value_cases(const std::vector<completed_command>& all, Complete complete) {
  std::string text;
  for (const completed_command& one : all)
    for (const completed_option& option : one.options)
      for (const std::string& name : option.names)
        if (option.has_value)
          text +=
              fmt::format("    {}) {}; return ;;\n", quoted(one.path + " " + name), complete(option.values));
  return text;
}

std::string bash_script(const std::vector<completed_command>& all) {
  std::string text = fmt::format(
      "# Completion of terrace for bash; made by `terrace completion bash`.\n"
      "_terrace() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= "
      "word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD - 1}}\"; do\n"
      "    case \"$command $word\" in\n"
      "    {}) command=${{command:+$command }}$word ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command $previous\" in\n{}"
      "  esac\n"
      "  case \"$command\" in\n",
      fmt::join(patterns_of(all), " | "), value_cases(all, [](const std::vector<std::string>& values) {
        return values.empty() ? std::string("compopt -o default")
                              : fmt::format("COMPREPLY=($(compgen -W {} -- \"$current\"))",
                                            quoted(fmt::format("{}", fmt::join(values, " "))));
      }));
  for (const completed_command& one : all)
    text += fmt::format(
        "    {}) words={}; [[ $current == -* ]] && words={} ;;\n", quoted(one.path),
        quoted(fmt::format("{}", fmt::join(one.commands.empty() ? one.words : one.commands, " "))),
        quoted(fmt::format("{}", fmt::join(names_of(one), " "))));
  return text + "  esac\n"
                "  if [[ -n $words ]]; then\n"
                "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                "  else\n"
                "    compopt -o default # files\n"
                "  fi\n"
                "}\n"
                "complete -F _terrace terrace\n";
}

std::string zsh_script(const std::vector<completed_command>& all) {
  std::string text = fmt::format(
      "#compdef terrace\n"
      "# Completion of terrace for zsh; made by `terrace completion zsh`.\n"
      "_terrace() {{\n"
      "  local command= word\n"
      "  local -a choices\n"
      "  for word in \"${{(@)words[2,CURRENT-1]}}\"; do\n"
      "    case \"$command $word\" in\n"
      "    ({}) command=${{command:+$command }}$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command $words[CURRENT-1]\" in\n{}"
      "  esac\n"
      "  case \"$command\" in\n",
      fmt::join(patterns_of(all), " | "), value_cases(all, [](const std::vector<std::string>& values) {
        return values.empty() ? std::string("_files") : fmt::format("compadd {}", fmt::join(values, " "));
      }));
  for (const completed_command& one : all) {
    std::string options, commands;
    for (const completed_option& option : one.options)
      for (const std::string& name : option.names)
        options += " " + quoted(name + ":" + option.about);
    for (const completed_command& below : all)
      for (const std::string& name : one.commands)
        if (below.path == (one.path.empty() ? name : one.path + " " + name))
          commands += " " + quoted(name + ":" + below.about);
    for (const std::string& word : one.words)
      commands += " " + quoted(word);
    text += fmt::format(
        "    {})\n      if [[ $PREFIX == -* ]]; then choices=({})\n      else choices=({}); fi ;;\n",
        quoted(one.path), options, commands);
  }
  return text + "  esac\n"
                "  if (( $#choices )); then _describe terrace choices; else _files; fi\n"
                "}\n"
                "compdef _terrace terrace\n";
}

std::string fish_script(const std::vector<completed_command>& all) {
  std::string text = fmt::format("# Completion of terrace for fish; made by `terrace completion fish`.\n"
                                 "function __terrace_is_at\n"
                                 "    set -l command ''\n"
                                 "    for word in (commandline -opc)[2..-1]\n"
                                 "        switch \"$command $word\"\n"
                                 "            case {}\n"
                                 "                set command (string trim \"$command $word\")\n"
                                 "        end\n"
                                 "    end\n"
                                 "    test \"$command\" = \"$argv[1]\"\n"
                                 "end\n",
                                 fmt::join(patterns_of(all), " "));
  for (const completed_command& one : all) {
    std::string here =
        fmt::format("complete -c terrace -n {}", quoted("__terrace_is_at \"" + one.path + "\""));
    for (const completed_command& below : all)
      for (const std::string& name : one.commands)
        if (below.path == (one.path.empty() ? name : one.path + " " + name))
          text += fmt::format("{} -f -a {} -d {}\n", here, name, quoted(below.about));
    if (!one.words.empty())
      text += fmt::format("{} -f -a {}\n", here, quoted(fmt::format("{}", fmt::join(one.words, " "))));
    for (const completed_option& option : one.options) {
      text += here;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.values.empty())
        text += fmt::format(" -x -a {}", quoted(fmt::format("{}", fmt::join(option.values, " "))));
      else if (option.has_value)
        text += " -r";
      text += " -d " + quoted(option.about) + "\n";
    }
  }
  return text;
}

class completion_command final : public command {
 public:
  void declare(CLI::App& app) override {
    root_ = app.get_parent();
    app.add_option("SHELL", shell_, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  outcome<exit_code> run(console& to) override {
    std::vector<completed_command> all;
    collect(*root_, "", all);
    to.print("{}", shell_ == "bash"  ? bash_script(all)
                   : shell_ == "zsh" ? zsh_script(all)
                                     : fish_script(all));
    return exit_code::ok;
  }

 private:
  const CLI::App* root_ = nullptr;
  std::string shell_;
};

} // namespace

std::unique_ptr<command> make_completion_command() { return std::make_unique<completion_command>(); }

} // namespace terrace::cli
