#include "bench/engine/experiment.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace terrace::bench {

namespace {

constexpr size_t prompt_tokens = experiment_prompt_tokens / experiment_requests;
constexpr size_t generated_tokens = experiment_generated_tokens / experiment_requests;
constexpr size_t steps_between_arrivals = 2;
static_assert(prompt_tokens * experiment_requests == experiment_prompt_tokens);

} // namespace

std::string_view name_of(schedule which) {
  switch (which) {
    case schedule::naive: return "naive";
    case schedule::offline: return "offline";
    case schedule::online: return "online";
  }
  return "";
}

std::vector<inference> requests_of(schedule which, const model_shape& shape) {
  std::mt19937 random(7);
  std::vector<std::vector<uint32_t>> prompts(experiment_prompts, std::vector<uint32_t>(prompt_tokens));
  for (auto& prompt : prompts)
    for (uint32_t& token : prompt)
      token = static_cast<uint32_t>(random() % shape.vocabulary);
  std::vector<size_t> asked(experiment_requests); // numbers of prompts
  for (size_t i = 0; i < asked.size(); ++i)
    asked[i] = i % experiment_prompts;
  for (size_t i = asked.size(); i > 1; --i) // std::shuffle differs between libraries
    std::swap(asked[i - 1], asked[random() % i]);
  if (which == schedule::offline)
    std::ranges::sort(asked);
  std::vector<inference> all;
  for (size_t i = 0; i < asked.size(); ++i)
    all.push_back({.number = i,
                   .prompt = prompts[asked[i]],
                   .generate = generated_tokens,
                   .first_step = which == schedule::online ? i * steps_between_arrivals : 0});
  return all;
}

size_t blocks_of_experiment() {
  return engine_options().running_max * paged_kv::blocks_for(prompt_tokens + generated_tokens);
}

engine_times run_experiment(schedule which, language_model& model, paged_kv& kv, prefix_cache* cache) {
  engine_options options;
  if (which == schedule::naive) {
    options.running_max = 1;
    cache = nullptr;
  }
  options.waits_for_equal = cache != nullptr;
  engine runs(model, kv, cache, options);
  return runs.run(requests_of(which, model.shape()));
}

} // namespace terrace::bench
