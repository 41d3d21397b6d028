// terrace trace generate
#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/trace_conversion.hpp"
#include "cli/trace_generator.hpp"
#include "cli/trace_statistics.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace terrace::cli {

namespace {

/// Writes to standard output for an empty name or "-".
outcome<void> write_trace(const std::string& path, const trace& made, console& to) {
  if (path.empty() || path == "-") {
    for (const trace_request& request : made.requests)
      to.write(format_trace_line(request));
    return {};
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const trace_request& request : made.requests)
    file << format_trace_line(request);
  file.close();
  if (!file)
    return failed(path + ": cannot be written: " + std::strerror(errno));
  return {};
}

bool is_file(const std::string& path) { return !path.empty() && path != "-"; }

class trace_generate_command final : public command {
 public:
  void declare(CLI::App& app) override {
    auto option = [&](const char* name, auto& value, const char* text) {
      app.add_option(name, value, text)->capture_default_str();
    };
    app.add_option("-o,--output", output_, "File to write; default: standard output");
    option("--seed", options_.seed, "The same seed and options give the same trace");
    option("--requests", options_.requests, "Number of requests to write");
    option("--sessions", options_.sessions,
           "Maximum number of conversations; 0: as many as the requests need");
    option("--rate", options_.session_rate, "Mean number of conversations started per second");
    app.add_option("--arrivals", arrivals_, "poisson or bursty")
        ->check(CLI::IsMember({"poisson", "bursty"}))
        ->capture_default_str();
    option("--burst-factor", options_.burst_factor, "Factor by which conversations start faster in a burst");
    option("--burst-seconds", options_.burst_seconds,
           "Mean length of a burst; bursts take a tenth of the time");
    option("--system-prompts", options_.system_prompts,
           "Number of shared prefixes, with popularity 1/rank; 0: none");
    option("--system-prompt-tokens", options_.system_prompt_tokens, "Mean length of a shared prefix");
    option("--user-tokens", options_.user_tokens, "Mean new input per turn");
    option("--output-tokens", options_.output_tokens, "Mean answer length; part of the next turn's context");
    option("--turns", options_.turns, "Mean number of turns per conversation");
    option("--think-seconds", options_.think_seconds, "Mean time between an answer and the next turn");
    option("--token-seconds", options_.token_seconds, "Time to decode one token of an answer");
    option("--branch", options_.branch,
           "Probability that a turn continues an earlier one instead of the last");
    option("--agents", options_.agents, "Fraction of conversations whose answers call tools");
    option("--tool-calls", options_.tool_calls,
           "Mean number of calls before an answer to the user, one turn each");
    option("--tool-seconds", options_.tool_seconds, "Mean time from a call to the turn with its result");
    option("--tool-tokens", options_.tool_tokens, "Mean result of a tool; the new input of its turn");
    option("--call-tokens", options_.call_tokens, "Mean length of an answer that calls a tool");
    option("--hints", options_.hints,
           "Fraction of conversations with hints: why an answer ended, whether the conversation is over, and "
           "when "
           "the next turn is expected");
    option("--context-max", options_.context_tokens_max, "Maximum tokens; a conversation ends before");
    app.add_flag("--json", json_, "With --output: print the summary as JSON (the trace itself always is)");
  }

  outcome<exit_code> run(console& to) override {
    options_.arrivals = arrivals_ == "bursty" ? arrival_kind::bursty : arrival_kind::poisson;
    auto made = generate_trace(options_);
    if (!made)
      return tl::unexpected(made.error());
    if (auto written = write_trace(output_, *made, to); !written)
      return tl::unexpected(written.error());
    if (!is_file(output_))
      return exit_code::ok;
    if (json_)
      print_json(to, {{"file", output_}, {"requests", made->requests.size()}, {"seed", options_.seed}});
    else
      to.print("{} written to {}\n", format_counted(made->requests.size(), "request"), output_);
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

// terrace trace info

namespace {

json describe(const trace_statistics& s) {
  return {{"requests", s.requests},
          {"conversations", s.conversations},
          {"seconds", s.seconds},
          {"input_tokens", s.input_tokens},
          {"output_tokens", s.output_tokens},
          {"block_tokens", s.block_tokens},
          {"blocks", s.blocks},
          {"distinct_blocks", s.distinct_blocks},
          {"infinite_cache_hit_ratio", s.infinite_hit_ratio()},
          {"contradictory_ids", s.contradictions},
          {"arrival_dispersion", s.burstiness},
          {"input_length", to_json(s.input_length)},
          {"output_length", to_json(s.output_length)},
          {"turns", to_json(s.turns)}};
}

void print(const trace_statistics& s, console& to) {
  to.print("{}", format_facts(
                     {{"requests", format_count(s.requests)},
                      {"conversations", format_count(s.conversations)},
                      {"time span", format_duration(s.seconds * 1e9)},
                      {"input", format_counted(s.input_tokens, "token")},
                      {"output", format_counted(s.output_tokens, "token")},
                      {"whole blocks", fmt::format("{} of {}", format_count(s.blocks),
                                                   format_counted(s.block_tokens, "token"))},
                      {"distinct blocks", format_count(s.distinct_blocks)},
                      {"infinite cache", format_ratio(s.infinite_hit_ratio()) + " of the input tokens hit"},
                      {"arrivals", fmt::format("dispersion {:.1f} (1: Poisson)", s.burstiness)}}));
  if (s.contradictions != 0)
    to.print("  {} behind two different prefixes, which a replay treats as different blocks\n",
             format_counted(s.contradictions, "id"));
  table lengths({{"", align::left}, {"mean"}, {"p50"}, {"p90"}, {"p99"}, {"max"}});
  auto add = [&](const char* name, const percentiles& p) {
    lengths.add({name, fmt::format("{:.1f}", p.mean), format_count(p.p50), format_count(p.p90),
                 format_count(p.p99), format_count(p.max)});
  };
  add("input tokens", s.input_length);
  add("output tokens", s.output_length);
  add("turns", s.turns);
  to.print("\n{}", lengths.to_string());
}

class trace_info_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("TRACE", path_, "JSON lines in Mooncake's format, plain or gzipped")->required();
    app.add_option("--limit", limit_, "Read only the first requests; 0: all")->capture_default_str();
    add_trace_format(app, format_);
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto loaded = load_trace(path_, limit_, format_);
    if (!loaded)
      return tl::unexpected(loaded.error());
    trace_statistics statistics = measure(*loaded);
    if (json_)
      print_json(to, describe(statistics));
    else
      print(statistics, to);
    return exit_code::ok;
  }

 private:
  std::string path_;
  size_t limit_ = 0;
  trace_format format_;
  bool json_ = false;
};

} // namespace

// terrace trace convert

namespace {

class trace_convert_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILE", path_, "A trace of another format, plain or gzipped")->required();
    app.add_option("-o,--output", output_, "File to write; default: standard output");
    app.add_option("--from", from_, "Its format; default: what the beginning of the file looks like")
        ->check(CLI::IsMember({"azure", "burstgpt", "bailian", "sharegpt"}));
    app.add_option("--block-tokens", options_.block_tokens,
                   "Tokens per hash id of the trace to be written; 0: 16 of bailian, otherwise 512")
        ->check(CLI::Range(0, 65'536))
        ->capture_default_str();
    app.add_option("--limit", options_.limit, "Read only the first requests; 0: all")->capture_default_str();
    app.add_option("--bytes-per-token", options_.bytes_per_token,
                   "Bytes of text that count as a token (sharegpt)")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--rate", options_.rate, "Conversations that begin per second (sharegpt)")
        ->check(CLI::Range(1e-6, 1e6))
        ->capture_default_str();
    app.add_option("--turn-seconds", options_.turn_seconds,
                   "Time between requests of a conversation (sharegpt)")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    app.add_flag("--json", json_, "With --output: print the summary as JSON (the trace itself always is)");
  }

  outcome<exit_code> run(console& to) override {
    options_.from = trace_source_named(from_);
    auto made = convert_trace(path_, options_);
    if (!made)
      return tl::unexpected(made.error());
    if (auto written = write_trace(output_, made->made, to); !written)
      return tl::unexpected(written.error());
    std::string needed =
        made->block_tokens == trace_block_tokens ? "" : fmt::format("--block-tokens {}", made->block_tokens);
    if (is_file(output_) && json_)
      print_json(to, {{"file", output_},
                      {"requests", made->made.requests.size()},
                      {"block_tokens", made->block_tokens},
                      {"assumed", made->assumed}});
    else if (is_file(output_)) {
      to.print("{} written to {}{}\n", format_counted(made->made.requests.size(), "request"), output_,
               needed.empty() ? "" : "; read it with " + needed);
      if (!made->assumed.empty())
        to.print("{}\n", made->assumed);
    }
    return exit_code::ok;
  }

 private:
  std::string path_, output_, from_;
  conversion_options options_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_trace_convert_command() { return std::make_unique<trace_convert_command>(); }

std::unique_ptr<command> make_trace_info_command() { return std::make_unique<trace_info_command>(); }

} // namespace terrace::cli
