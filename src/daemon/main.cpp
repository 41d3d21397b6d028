// terraced: its command line and its settings.
#include "base/nearest_name.hpp"
#include "base/unique_fd.hpp"
#include "daemon/limits.hpp"
#include "daemon/logging.hpp"
#include "daemon/serve.hpp"
#include "daemon/settings_check.hpp"
#include "daemon/settings_machine.hpp"
#include "daemon/settings_table.hpp"
#include "daemon/settings_toml.hpp"

#include <CLI/CLI.hpp>

#include <malloc.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace {

using namespace terrace;

struct command_line {
  std::string config;
  std::string socket;
  std::string state_dir;
  std::string metrics;
  std::string gpu;
  bool version = false;
  bool check = false;
  bool print_needs = false;
  bool try_remotes = false;
  bool print_config = false;
  bool print_reference = false;
};

std::string render(const std::vector<option_problem>& problems) {
  std::string text;
  for (const option_problem& problem : problems)
    text += problem.option + " " + problem.wrong + "; expected: " + problem.expected +
            "; fix: " + problem.fix + "\n";
  return text;
}

/// The error names the word of the command line that is wrong, and not the option of the file that it replaces.
std::vector<option_problem> as_given(std::vector<option_problem> problems, const command_line& given) {
  for (option_problem& problem : problems) {
    if ((problem.option == "listen.path" || problem.option == "listen[0].path") && !given.socket.empty())
      problem.option = "--socket";
    else if (problem.option == "disk.path" && !given.state_dir.empty())
      problem.option = "--state-dir";
    else if (problem.option == "metrics.address" && !given.metrics.empty())
      problem.option = "--metrics";
  }
  return problems;
}

/// Options of the command line, which override those of the file.
void override_options(settings& with, const command_line& given) {
  if (!given.socket.empty() && with.listen.size() == 1)
    with.listen.front().path = given.socket;
  if (!given.state_dir.empty())
    with.disk.path = {given.state_dir};
  if (!given.metrics.empty())
    with.metrics.address = given.metrics;
}

/// The settings of the file, overridden by the command line. `partial`: gets what a file with mistakes has beside them; may be null.
result<settings> read_settings(const command_line& given, const environment& env, bool look_at_disks = true,
                               std::optional<partial_settings>* partial = nullptr) {
  settings with = default_settings(env);
  if (!given.config.empty()) {
    auto parsed = load_settings(given.config, env, partial);
    if (!parsed) {
      if (partial != nullptr && *partial)
        override_options((*partial)->with, given);
      return fail(errc::bad_request, render_problems(parsed.error()));
    }
    with = std::move(*parsed);
  }
  if (!given.socket.empty() && with.listen.size() != 1)
    return fail(errc::bad_request, "--socket replaces the path of one [[listen]]; the configuration has " +
                                       std::to_string(with.listen.size()) + "\n");
  override_options(with, given);
  auto problems = with.validate();
  if (problems.empty() && look_at_disks)
    problems = repeated_directories(with);
  if (!problems.empty())
    return fail(errc::bad_request, render(as_given(std::move(problems), given)));
  return with;
}

/// Makes logging what the file asks for, as far as it can be read, and says why the daemon does not start.
exit_code refuse(const command_line& given, const error& why) {
  if (!given.config.empty() && asks_for_json_log(given.config)) {
    daemon_options options;
    options.log_json = true;
    start_logging(options);
    log_fatal(why.text);
  } else {
    std::cerr << why.text;
  }
  return wrong_usage;
}

/// Prints the answer of an option such as --version. An answer that cannot be written is a failure.
exit_code print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return clean;
  std::cerr << "terraced: standard output cannot be written: " << std::strerror(errno) << "\n";
  return failed;
}

/// A folder that the command line names exists, or the daemon does not start. Empty: it does, or none is named.
std::vector<option_problem> state_dir_problems(const command_line& given) {
  if (given.state_dir.empty() || std::filesystem::is_directory(given.state_dir))
    return {};
  return {{"--state-dir", "names \"" + given.state_dir + "\"", "an existing directory",
           "mount its device, or make the directory"}};
}

machine_findings find_on_machine(const command_line& given, const settings& with,
                                 const std::string& default_directory, const std::string& default_socket) {
  auto found = check_machine(with, default_directory, default_socket);
  for (option_problem& problem : state_dir_problems(given))
    found.failures.push_back(std::move(problem));
  return {as_given(std::move(found.failures), given), as_given(std::move(found.warnings), given)};
}

/// Machine findings about the rest of a file with mistakes: an operator corrects all at once.
machine_findings find_beside_mistakes(const command_line& given, const partial_settings& rest,
                                      const std::string& default_directory,
                                      const std::string& default_socket) {
  auto found = check_machine(rest.with, default_directory, default_socket);
  leave_out(found, rest.wrong);
  for (option_problem& problem : state_dir_problems(given))
    found.failures.push_back(std::move(problem));
  return {as_given(std::move(found.failures), given), as_given(std::move(found.warnings), given)};
}

/// `--check`: also what depends on this machine and this moment.
exit_code check(const command_line& given, const settings& with, const std::string& default_directory,
                const std::string& default_socket) {
  auto found = find_on_machine(given, with, default_directory, default_socket);
  std::cerr << render(found.failures);
  if (!found.failures.empty())
    return wrong_usage;
  for (const option_problem& problem : found.warnings)
    std::cerr << "warning: " << render({problem});
  for (const std::string& line : describe_shrinking(with))
    std::cerr << line << "\n";
  return print((given.config.empty() ? "the defaults are" : given.config + " is") + " valid\n");
}

/// `--print-needs`, for `terrace doctor`: answers for a wrong file as well.
exit_code print_needs(const command_line& given, const result<settings>& with, const machine_findings& beside,
                      const std::string& default_directory, const std::string& default_socket) {
  if (with) {
    std::string text = needs_report(*with, find_on_machine(given, *with, default_directory, default_socket),
                                    default_directory, default_socket);
    if (given.try_remotes)
      for (const remote_trial& each : try_remotes(*with))
        text += "remote\t" + each.address + "\t" + each.step + "\t" + each.failure + "\n";
    return print(text);
  }
  std::string text;
  std::istringstream lines(with.error().text);
  for (std::string line; std::getline(lines, line);)
    if (auto fix = line.rfind("; fix: "); fix != std::string::npos)
      text += "failure\t" + line.substr(0, fix) + "\t" + line.substr(fix + 7) + "\n";
    else if (!line.empty())
      text += "failure\t" + line + "\n";
  return print(text + findings_report(beside));
}

/// What CLI11 did not understand; a mistyped option gets a suggestion.
std::string explain(const CLI::ParseError& problem, const CLI::App& app) {
  std::vector<std::string> rest = app.remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&problem) == nullptr || rest.empty())
    return problem.what();
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    names.push_back(option->get_name());
  std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string word = rest.front().substr(0, rest.front().find('='));
  const bool is_option = word.starts_with('-');
  std::string nearest(nearest_name(is_option ? word : "--" + word, candidates));
  if (!is_option)
    return "expected options only, found \"" + word + "\"" +
           (nearest.empty() ? "; commands are those of the program terrace"
                            : "; did you mean \"" + nearest + "\"?");
  return "unknown option \"" + word + "\"" + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?");
}

/// An option with an empty value, as from a variable that is not set: its name; otherwise empty.
std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() != 0 && option->get_items_expected_min() > 0 && option->results().front().empty())
      return option->get_name();
  return {};
}

/// Keeps glibc from adapting its thresholds. It raises that for separate mappings to the size of the largest buffer that was
/// freed, up to 32 MiB, and a flood's buffers stay resident. Setting one threshold fixes the other: with the default
/// of 128 KiB for the top of a heap every burst of requests takes its memory from the kernel anew. Buffers of frames below
/// 1 MiB, such as prompts of 200,000 tokens, come from a heap: fresh pages cost more than to hash or compare them.
void limit_heap() {
  constexpr int separate_mapping = 1 << 20, kept_at_top = 2 << 20; // bytes
  ::mallopt(M_MMAP_THRESHOLD, separate_mapping);
  ::mallopt(M_TRIM_THRESHOLD, kept_at_top); // of each thread's heap, until `malloc_trim` after a flood
}

} // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  command_line given;
  CLI::App app{
      "terraced is the KV cache daemon for LLM inference engines: one per machine, beside the engines."};
  app.add_flag("--version", given.version, "Print the version and the GPUs that were found, and exit");
  app.add_option("--config", given.config, "Configuration file; without it, all options have their defaults");
  app.add_option("--socket", given.socket, "Listen on this socket, overriding the configuration");
  app.add_option("--state-dir", given.state_dir,
                 "Directory of the disk tier's files and of pending clears, overriding the configuration");
  app.add_option("--metrics", given.metrics,
                 "Serve metrics on this address, such as 127.0.0.1:9464; one that is not loopback "
                 "needs metrics.token_file");
  app.add_option("--gpu", given.gpu, "")->group(""); // by the daemon itself
  app.add_flag("--check", given.check, "Check the configuration, report every mistake, and exit");
  app.add_flag("--print-needs", given.print_needs, "")->group(""); // for terrace doctor
  app.add_flag("--try-remotes", given.try_remotes, "")->group(""); // with --print-needs
  app.add_flag("--print-config", given.print_config,
               "Print a configuration file with every option, its default and its meaning, and exit");
  app.add_flag("--print-reference", given.print_reference, "")->group(""); // for tools/write_options.py
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0)
      return print(app.help());
    std::cerr << "terraced: " << explain(problem, app) << " (see terraced --help)\n";
    return wrong_usage;
  }
  if (std::string option = empty_option(app); !option.empty()) {
    std::cerr << "terraced: " << option << " is given an empty value; name one, or leave the option out\n";
    return wrong_usage;
  }
  if (given.version)
    return print("terraced " TERRACE_VERSION "\n" + gpu_report());
  if (given.print_config || given.print_reference)
    return print(given.print_config ? commented_configuration() : option_reference());
  if (!given.gpu.empty())
    return run_gpu_process(given.gpu);
  auto env = environment::current();
  const std::string default_directory = env.state_path();
  if (!given.state_dir.empty())
    env.state_directory = given.state_dir;
  std::optional<partial_settings> partial;
  auto with = read_settings(given, env, true, &partial);
  if (with)
    if (auto fits = fits_in_memory(with->host, memory_limits()); !fits)
      with = fail(fits.error().code, "terraced: " + fits.error().text + "\n");
  machine_findings beside;
  if (partial && (given.check || given.print_needs))
    beside = find_beside_mistakes(given, *partial, default_directory, env.socket_path());
  if (given.print_needs)
    return print_needs(given, with, beside, default_directory, env.socket_path());
  if (!with && given.check) {
    std::cerr << with.error().text << render(beside.failures);
    for (const option_problem& problem : beside.warnings)
      std::cerr << "warning: " << render({problem});
    return wrong_usage;
  }
  if (!with)
    return refuse(given, with.error());
  if (given.check)
    return check(given, *with, default_directory, env.socket_path());
  if (auto problems = machine_problems(*with, env.socket_path()); !problems.empty())
    return refuse(given, {errc::bad_request, render(as_given(std::move(problems), given))});
  if (auto problems = state_dir_problems(given); !problems.empty())
    return refuse(given, {errc::bad_request, render(problems)});
  make_default_directories(*with, default_directory, env.socket_path());
  limit_heap();
  // A device that hangs must not stop the thread that answers the watchdog; the paths change only at a restart.
  return serve(
      std::move(*with), [&] { return read_settings(given, env, false); }, env);
}
