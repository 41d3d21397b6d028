// terrace trace info

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/trace_statistics.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

json describe(const trace_statistics& s) {
  return {{"requests", s.requests},
          {"conversations", s.conversations},
          {"seconds", s.seconds},
          {"input_tokens", s.input_tokens},
          {"output_tokens", s.output_tokens},
          {"block_tokens", trace_block_tokens},
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
  fmt::print(
      to.out, "{}",
      format_facts(
          {{"requests", format_count(s.requests)},
           {"conversations", format_count(s.conversations)},
           {"time span", format_duration(s.seconds * 1e9)},
           {"input", format_count(s.input_tokens) + " tokens"},
           {"output", format_count(s.output_tokens) + " tokens"},
           {"whole blocks", fmt::format("{} of {} tokens", format_count(s.blocks), trace_block_tokens)},
           {"distinct blocks", format_count(s.distinct_blocks)},
           {"infinite cache", format_ratio(s.infinite_hit_ratio()) + " of the input tokens hit"},
           {"arrivals", fmt::format("dispersion {:.1f} (1: Poisson)", s.burstiness)}}));
  if (s.contradictions != 0)
    fmt::print(to.out, "  {} ids follow two different prefixes; a replay treats them as different blocks\n",
               format_count(s.contradictions));
  table lengths({{"", align::left}, {"mean"}, {"p50"}, {"p90"}, {"p99"}, {"max"}});
  auto add = [&](const char* name, const percentiles& p) {
    lengths.add({name, fmt::format("{:.1f}", p.mean), format_count(p.p50), format_count(p.p90),
                 format_count(p.p99), format_count(p.max)});
  };
  add("input tokens", s.input_length);
  add("output tokens", s.output_length);
  add("turns", s.turns);
  fmt::print(to.out, "\n{}", lengths.to_string());
}

class trace_info_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("TRACE", path_, "JSON lines in Mooncake's format, plain or gzipped")->required();
    app.add_option("--limit", limit_, "Read only the first requests; 0: all")->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto loaded = load_trace(path_, limit_);
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
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_trace_info_command() { return std::make_unique<trace_info_command>(); }

} // namespace terrace::cli
