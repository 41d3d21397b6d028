// A reference engine with its KV in the daemon, compared with the same engine without a cache and with one in
// its own memory.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/engine/device/device_transformer.hpp"
#include "bench/engine/device/steps_image.hpp"
#include "bench/engine/experiment.hpp"
#include "bench/engine/terrace_cache.hpp"
#include "bench/engine/transformer.hpp"
#include "bench/workload.hpp"

#include <algorithm>
#include <iostream>
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

/// Returns the speedup of each round: disturbances by the machine affect both sides.
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

/// Runs the published experiment with the model's KV at the daemon.
void measure_experiment(language_model& model, const std::string& socket, const std::string& title,
                        const settings& options, const reporter& report) {
  auto kv = model.make_kv(blocks_of_experiment());
  int spaces = 0;
  for (schedule which : {schedule::naive, schedule::offline, schedule::online}) {
    rounds_of_times times; // the naive schedule uses no cache, so its two runs are equal and show the noise
    for (int round = 0; round < options.rounds; ++round) {
      times.without.push_back(run_experiment(which, model, *kv, nullptr));
      own_memory_cache own(*kv);
      times.own.push_back(which == schedule::naive ? times.without.back()
                                                   : run_experiment(which, model, *kv, &own));
      // Each round begins with an empty cache.
      terrace_cache cache(socket, "round " + std::to_string(++spaces), model.shape(), *kv);
      times.with.push_back(run_experiment(which, model, *kv, &cache));
    }
    report_schedule(title + "_" + std::string(name_of(which)), times, report);
  }
}

constexpr size_t ttft_prefix_tokens = 4'096, ttft_new_tokens = 24;

model_shape shape_for_ttft(model_shape shape) {
  shape.positions = ttft_prefix_tokens + ttft_new_tokens + block_tokens;
  return shape;
}

/// Times to the first token after a long prefix: computed, and with the prefix in each tier.
struct first_token_times {
  std::vector<double> computed, gpu, host, disk;
};

first_token_times measure_first_token(language_model& model, const std::string& socket, bool gpu_tier,
                                      int rounds) {
  auto kv = model.make_kv(paged_kv::blocks_for(model.shape().positions));
  std::mt19937 random(11);
  auto continued = [&](std::vector<uint32_t> prompt, size_t tokens) {
    for (size_t i = 0; i < tokens; ++i)
      prompt.push_back(static_cast<uint32_t>(random() % model.shape().vocabulary));
    return prompt;
  };
  auto milliseconds = [&](std::vector<uint32_t> prompt, prefix_cache* cache) {
    engine runs(model, *kv, cache, {});
    return runs.run({{.prompt = std::move(prompt), .generate = 1}}).total_seconds * 1e3;
  };
  const uint64_t prefix_bytes = paged_kv::blocks_for(ttft_prefix_tokens) * kv->block_bytes();
  first_token_times times;
  for (int round = 0; round < rounds; ++round) {
    terrace_cache cache(socket, "round " + std::to_string(round), model.shape(), *kv);
    auto prefix = continued({}, ttft_prefix_tokens);
    times.computed.push_back(milliseconds(continued(prefix, ttft_new_tokens), nullptr));
    milliseconds(prefix, &cache);
    if (gpu_tier) {
      cache.move_to(tier_kind::gpu, prefix);
      times.gpu.push_back(milliseconds(continued(prefix, ttft_new_tokens), &cache));
      if (cache.bytes_from(tier_kind::gpu) != prefix_bytes)
        give_up("the prefix did not come from the GPU tier");
      cache.evict_from(tier_kind::gpu, prefix);
    }
    times.host.push_back(milliseconds(continued(prefix, ttft_new_tokens), &cache));
    if (cache.bytes_from(tier_kind::host) != prefix_bytes)
      give_up("the prefix did not come from host memory");
    if (gpu_tier)
      cache.evict_from(tier_kind::gpu, prefix); // it may have come back
    cache.move_to(tier_kind::disk, prefix);
    times.disk.push_back(milliseconds(continued(prefix, ttft_new_tokens), &cache));
    if (cache.bytes_from(tier_kind::disk) != prefix_bytes)
      give_up("the prefix did not come from disk");
  }
  return times;
}

void report_first_token(const std::string& title, const first_token_times& times, const reporter& report) {
  if (!times.gpu.empty())
    report(of_rounds({.name = title + "_gpu", .unit = "ms", .floor = 0.25, .aim = 0.125}, times.gpu,
                     times.computed));
  report(of_rounds({.name = title + "_host", .unit = "ms", .floor = 0.25, .aim = 0.125}, times.host,
                   times.computed));
  report(of_rounds({.name = title + "_disk", .unit = "ms", .floor = 1, .aim = 0.25}, times.disk,
                   times.computed));
}

/// Larger than on a processor, so that a step computes longer than its launch takes: 32 KiB of KV per token.
model_shape shape_on_gpu() { return {.layers = 16, .kv_heads = 8, .inner = 1408}; }

/// The model on the machine's first GPU; null, with the reason, if there is no GPU or no code for it.
struct gpu_model {
  std::unique_ptr<device_transformer> model;
  std::string uuid;
};

gpu_model make_gpu_model(const model_shape& shape) {
  auto driver = cuda::driver::open();
  if (!driver || steps_image().empty()) {
    std::cerr << "not measured: " << (driver ? "built without NVIDIA's toolkit" : driver.error().text)
              << std::endl;
    return {};
  }
  auto device = must((*driver)->devices(), "asking for devices").front();
  auto context = must(cuda::context::retain(*driver, device.ordinal), "opening the GPU");
  auto uuid = cuda::to_text(device.uuid);
  return {std::make_unique<device_transformer>(context, uuid, steps_image(), shape), uuid};
}

} // namespace

void reference_engine(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  transformer model{model_shape()};
  measure_experiment(model, daemon.socket(), "reference_engine", options, report);
}

void engine_ttft(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  transformer model(shape_for_ttft({}));
  report_first_token("engine_ttft", measure_first_token(model, daemon.socket(), false, options.rounds),
                     report);
}

void gpu_reference_engine(const settings& options, const reporter& report) {
  auto on = make_gpu_model(shape_on_gpu());
  if (!on.model)
    return;
  // Room for the KV of the 14 prompts, several rounds of them.
  bench_daemon daemon(options, {.host_bytes = 4ULL << 30, .disk = false});
  settings fewer = options;
  // A round takes 45 s on an H100, because one thread computes an output here, as on every device.
  fewer.rounds = 1;
  measure_experiment(*on.model, daemon.socket(), "gpu_reference_engine", fewer, report);
}

void ttft(const settings& options, const reporter& report) {
  auto on = make_gpu_model(shape_for_ttft(shape_on_gpu()));
  if (!on.model)
    return;
  bench_daemon daemon(options,
                      {.host_bytes = 1ULL << 30,
                       .more = "[gpu]\ntier_bytes = \"256MiB\"\ntier_device = \"" + on.uuid + "\"\n"});
  report_first_token("ttft", measure_first_token(*on.model, daemon.socket(), true, options.rounds), report);
}

} // namespace terrace::bench
