#include "driver/engine_entries.hpp"

#include "bench/engine/device/steps.hpp"

#include <cstring>
#include <type_traits>

namespace sim {

namespace bench = terrace::bench;

namespace {

/// Writes its outputs one after the other, with addresses that are ours.
template <class Step>
operation twin_of(machine& m, void** parameters) {
  Step step;
  uint64_t outputs = 0;
  std::memcpy(&step, parameters[0], sizeof step); // the driver copies parameters, too
  std::memcpy(&outputs, parameters[1], sizeof outputs);
  operation launch;
  bool legal = outputs == step.outputs();
  step.addresses([&](auto*& pointer, uint64_t count, bool writes) {
    auto found = m.find(reinterpret_cast<uint64_t>(pointer), count * sizeof(*pointer), writes, Step::name);
    if (!found) {
      legal = false;
      return;
    }
    auto* here = found->data + (reinterpret_cast<uint64_t>(pointer) - found->base);
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(here);
    launch.pins.push_back(std::move(found));
  });
  launch.run = [step, outputs, legal] {
    if (!legal)
      return status::illegal_address; // noticed when it runs, and ends the context
    for (uint64_t i = 0; i < outputs; ++i)
      step.at(i);
    return status::success;
  };
  return launch;
}

} // namespace

std::optional<operation> engine_twin(machine& m, std::string_view name, void** parameters) {
#define TERRACE_ENGINE_TWIN(step)                                                                            \
  if (name == bench::step##_step::name)                                                                      \
    return twin_of<bench::step##_step>(m, parameters);
  TERRACE_ENGINE_STEPS(TERRACE_ENGINE_TWIN)
#undef TERRACE_ENGINE_TWIN
  return std::nullopt;
}

bool has_engine_twin(std::string_view name) {
#define TERRACE_ENGINE_NAMED(step) name == bench::step##_step::name ||
  return TERRACE_ENGINE_STEPS(TERRACE_ENGINE_NAMED) false;
#undef TERRACE_ENGINE_NAMED
}

} // namespace sim
