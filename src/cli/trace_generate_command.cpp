// terrace trace generate

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/trace_generator.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace terrace::cli {

namespace {

class trace_generate_command final : public command {
 public:
  void declare(CLI::App& app) override {
    auto option = [&](const char* name, auto& value, const char* text) {
      app.add_option(name, value, text)->capture_default_str();
    };
    app.add_option("-o,--output", output_, "File to write; standard output without it");
    option("--seed", options_.seed, "Same seed and options, same trace");
    option("--requests", options_.requests, "Lines to write");
    option("--sessions", options_.sessions, "Conversations at most; 0: as many as the requests need");
    option("--rate", options_.session_rate, "Conversations that start per second, on the average");
    app.add_option("--arrivals", arrivals_, "poisson or bursty")
        ->check(CLI::IsMember({"poisson", "bursty"}))
        ->capture_default_str();
    option("--burst-factor", options_.burst_factor, "How much faster conversations start in a burst");
    option("--burst-seconds", options_.burst_seconds,
           "Mean length of a burst; bursts fill a tenth of the time");
    option("--system-prompts", options_.system_prompts, "Shared beginnings, popular as 1/rank; 0: none");
    option("--system-prompt-tokens", options_.system_prompt_tokens, "Their mean length");
    option("--user-tokens", options_.user_tokens, "Mean new input of a turn");
    option("--output-tokens", options_.output_tokens, "Mean answer, part of the next turn's context");
    option("--turns", options_.turns, "Mean turns of a conversation");
    option("--think-seconds", options_.think_seconds, "Mean time between an answer and the next turn");
    option("--token-seconds", options_.token_seconds, "Time to decode one token of an answer");
    option("--branch", options_.branch,
           "Chance that a turn continues from an earlier one instead of the last");
    option("--agents", options_.agents, "Share of the conversations whose answers call tools");
    option("--tool-calls", options_.tool_calls,
           "Mean calls before an answer to the user, each a turn of its own");
    option("--tool-seconds", options_.tool_seconds, "Mean time from a call to the turn with its result");
    option("--tool-tokens", options_.tool_tokens, "Mean result of a tool, the new input of its turn");
    option("--call-tokens", options_.call_tokens, "Mean answer that calls a tool");
    option("--hints", options_.hints,
           "Share of the conversations whose lines tell why an answer ended, whether the conversation is "
           "over and "
           "when about the next turn is due");
    option("--context-max", options_.context_tokens_max, "Tokens; a conversation ends before it");
    app.add_flag("--json", json_, "With --output: say what was written as JSON (the trace itself always is)");
  }

  outcome<exit_code> run(console& to) override {
    options_.arrivals = arrivals_ == "bursty" ? arrival_kind::bursty : arrival_kind::poisson;
    auto made = generate_trace(options_);
    if (!made)
      return tl::unexpected(made.error());
    if (output_.empty()) {
      for (const trace_request& request : made->requests)
        if (std::fputs(format_trace_line(request).c_str(), to.out) < 0)
          return failed("standard output cannot be written");
      return exit_code::ok;
    }
    std::ofstream file(output_, std::ios::binary | std::ios::trunc);
    for (const trace_request& request : made->requests)
      file << format_trace_line(request);
    file.close();
    if (!file)
      return failed(output_ + ": cannot be written: " + std::strerror(errno));
    if (json_)
      print_json(to, {{"file", output_}, {"requests", made->requests.size()}, {"seed", options_.seed}});
    else
      fmt::print(to.out, "{} requests written to {}\n", made->requests.size(), output_);
    return exit_code::ok;
  }

 private:
  trace_options options_;
  std::string arrivals_ = "poisson";
  std::string output_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_trace_generate_command() { return std::make_unique<trace_generate_command>(); }

} // namespace terrace::cli
