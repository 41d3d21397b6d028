// Gauges of host memory that the tier's allocator does not know.
#pragma once

#include "memory/segmented_arena.hpp"
#include "metrics/samples.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace terrace {

/// Returns a source of the exposition; safe on any thread.
inline std::function<void(metrics::sample_sink&)> memory_gauges(std::shared_ptr<const segmented_arena> memory,
                                                                const metrics::labels& of) {
  return [memory = std::move(memory), of](metrics::sample_sink& sink) {
    sink.gauge("terrace_arena_bytes", "Host memory of the group, without segments being removed.", of,
               static_cast<double>(memory->size()));
    sink.gauge("terrace_arena_huge_page_bytes", "Host memory in pages of 2 MiB.", of,
               static_cast<double>(memory->huge_page_bytes()));
    sink.gauge("terrace_arena_leaving_bytes",
               "Memory of segments being removed that leases or clients still use.", of,
               static_cast<double>(memory->leaving_bytes()));
  };
}

} // namespace terrace
