// A reference engine with its KV in the daemon, beside the same engine without a cache, and with one in its own memory.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/engine/experiment.hpp"
#include "bench/engine/terrace_cache.hpp"
#include "bench/workload.hpp"

#include <algorithm>
#include <random>

namespace terrace::bench {

namespace {

struct rounds_of_times {
  std::vector<engine_times> without, own, with;
};

struct seconds_and_gain {
  std::string_view name;
  double engine_times::*seconds;
};

std::vector<double> each(const std::vector<engine_times>& all, double engine_times::*what) {
  std::vector<double> values;
  for (auto& times : all)
    values.push_back(times.*what);
  return values;
}

/// How many times faster, round by round: what the machine does besides meets both.
std::vector<double> gains(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> values;
  for (size_t i = 0; i < before.size(); ++i)
    values.push_back(before[i] / after[i]);
  return values;
}

void report_schedule(const std::string& name, const rounds_of_times& times, const reporter& report) {
  for (auto [what, seconds] : {seconds_and_gain{"prefill", &engine_times::prefill_seconds},
                               seconds_and_gain{"total", &engine_times::total_seconds}}) {
    auto without = each(times.without, seconds), with = each(times.with, seconds);
    std::string title = name + "_" + std::string(what);
    report(of_rounds({.name = title, .unit = "s", .bounded = false}, with, without));
    report(
        of_rounds({.name = title + "_gain", .unit = "times", .direction = better::higher, .bounded = false},
                  gains(without, with), gains(without, each(times.own, seconds))));
  }
  auto rates = [](const std::vector<engine_times>& all) {
    std::vector<double> values;
    for (double seconds : each(all, &engine_times::total_seconds))
      values.push_back(experiment_generated_tokens / seconds);
    return values;
  };
  report(
      of_rounds({.name = name + "_rate", .unit = "tokens/s", .direction = better::higher, .bounded = false},
                rates(times.with), rates(times.without)));
}

} // namespace

void reference_engine(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  transformer model{model_shape()};
  paged_kv kv(model.shape(), blocks_of_experiment());
  int spaces = 0;
  for (schedule which : {schedule::naive, schedule::offline, schedule::online}) {
    rounds_of_times times; // of naive, which asks no cache, both runs are the same: they show the noise
    for (int round = 0; round < options.rounds; ++round) {
      times.without.push_back(run_experiment(which, model, kv, nullptr));
      own_memory_cache own(kv);
      times.own.push_back(which == schedule::naive ? times.without.back()
                                                   : run_experiment(which, model, kv, &own));
      // Each round begins with nothing in the cache.
      terrace_cache cache(daemon.socket(), "round " + std::to_string(++spaces), model.shape(), kv);
      times.with.push_back(run_experiment(which, model, kv, &cache));
    }
    report_schedule("reference_engine_" + std::string(name_of(which)), times, report);
  }
}

void engine_ttft(const settings& options, const reporter& report) {
  constexpr size_t prefix_tokens = 4'096, new_tokens = 24;
  bench_daemon daemon(options);
  model_shape shape;
  shape.positions = prefix_tokens + new_tokens + block_tokens;
  transformer model(shape);
  paged_kv kv(shape, paged_kv::blocks_for(shape.positions));
  std::mt19937 random(11);
  auto continued = [&](std::vector<uint32_t> prompt, size_t tokens) {
    for (size_t i = 0; i < tokens; ++i)
      prompt.push_back(static_cast<uint32_t>(random() % shape.vocabulary));
    return prompt;
  };
  auto milliseconds = [&](std::vector<uint32_t> prompt, prefix_cache* cache) {
    engine runs(model, kv, cache, {});
    return runs.run({{.prompt = std::move(prompt), .generate = 1}}).total_seconds * 1e3;
  };
  std::vector<double> computed, host, disk;
  for (int round = 0; round < options.rounds; ++round) {
    terrace_cache cache(daemon.socket(), "round " + std::to_string(round), shape, kv);
    auto prefix = continued({}, prefix_tokens);
    computed.push_back(milliseconds(continued(prefix, new_tokens), nullptr));
    milliseconds(prefix, &cache);
    host.push_back(milliseconds(continued(prefix, new_tokens), &cache));
    cache.move_to_disk(prefix);
    disk.push_back(milliseconds(continued(prefix, new_tokens), &cache));
    if (cache.tokens_restored() != 2 * prefix_tokens)
      give_up("the prefix was not found as a whole");
    if (cache.bytes_from_disk() != paged_kv::blocks_for(prefix_tokens) * kv.block_bytes())
      give_up("the prefix did not come from disk");
  }
  report(of_rounds({.name = "engine_ttft_host", .unit = "ms", .floor = 0.25, .aim = 0.125}, host, computed));
  report(of_rounds({.name = "engine_ttft_disk", .unit = "ms", .floor = 1, .aim = 0.25}, disk, computed));
}

} // namespace terrace::bench
