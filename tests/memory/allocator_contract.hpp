// The promises of every allocator, as one check. The suite runs it over the registry, and a broken allocator
// must fail it.
#pragma once

#include "memory/allocator.hpp"

#include <functional>
#include <optional>
#include <string>

namespace terrace::test {

using allocator_maker = std::function<std::unique_ptr<allocator>()>;

/// Runs `steps` random batches against a naive map of the arena. Returns nullopt if every promise held,
/// otherwise the first broken one.
std::optional<std::string> broken_promise(const allocator_maker& make, const allocator_options& options,
                                          uint64_t seed, int steps);

} // namespace terrace::test
