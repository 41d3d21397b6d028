// The twins of the reference engine's kernels (bench/engine/device/steps.cu).
#pragma once

#include "driver/machine.hpp"

#include <string_view>

namespace sim {

bool has_engine_twin(std::string_view name);
/// Returns what a launch does, or nullopt if it is not a kernel of the engine. Call it with the lock.
std::optional<operation> engine_twin(machine& m, std::string_view name, void** parameters);

} // namespace sim
