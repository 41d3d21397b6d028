// Asks how much of an arena is in use.
#pragma once

#include "base/error.hpp"
#include "memory/allocator.hpp"

#include <cstdint>
#include <string>

namespace terrace {

struct usage_request {};
struct usage_answer {
  error failure;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free and not kept free ahead of demand: a store of this size evicts nothing
  uint64_t waiting = 0;
  std::string allocator;
};

} // namespace terrace
