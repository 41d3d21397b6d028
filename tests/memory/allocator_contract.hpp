// What every allocator promises, as one check that the suite runs over the registry and a broken one must fail.
#pragma once

#include "memory/allocator.hpp"

#include <functional>
#include <optional>
#include <string>

namespace terrace::testing {

using allocator_maker = std::function<std::unique_ptr<allocator>()>;

/// Runs `steps` random batches against a naive map of the arena. Nothing when every promise held, otherwise the first
/// one that was broken.
std::optional<std::string> broken_promise(const allocator_maker& make, const allocator_options& options,
                                          uint64_t seed, int steps);

} // namespace terrace::testing
