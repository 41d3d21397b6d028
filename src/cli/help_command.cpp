// terrace help, terrace version
#include "cli/app.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class help_command final : public command {
 public:
  void declare(CLI::App& app) override {
    root_ = app.get_parent();
    app.add_option("COMMAND", words_, "The command, such as status or trace generate");
  }

  outcome<exit_code> run(console& to) override {
    const CLI::App* at = root_;
    std::string path = "terrace";
    for (const std::string& word : words_) {
      auto below = at->get_subcommands([&](const CLI::App* app) { return app->get_name() == word; });
      if (below.empty())
        return bad_usage(unknown_command(word, *at));
      at = below.front();
      path += " " + word;
    }
    // App::help would show the help of the command that was given, which is this one.
    to.print("{}", at->get_formatter()->make_help(at, path, CLI::AppFormatMode::Normal));
    return exit_code::ok;
  }

 private:
  const CLI::App* root_ = nullptr;
  std::vector<std::string> words_;
};

class version_command final : public command {
 public:
  void declare(CLI::App& app) override { app.add_flag("--json", json_, "Print JSON"); }

  outcome<exit_code> run(console& to) override {
    if (json_)
      print_json(to, {{"version", TERRACE_VERSION}});
    else
      to.print("terrace {}\n", TERRACE_VERSION);
    return exit_code::ok;
  }

 private:
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_help_command() { return std::make_unique<help_command>(); }
std::unique_ptr<command> make_version_command() { return std::make_unique<version_command>(); }

} // namespace terrace::cli
