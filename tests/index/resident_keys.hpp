// Keys of objects that differ by a number.
#pragma once

#include "base/object_key.hpp"

#include <cstdint>
#include <cstring>

namespace terrace::test {

inline object_key numbered_key(uint64_t number) {
  object_key made{space_id{1}, 0, 0, {}};
  std::memcpy(made.chunk.bytes.data(), &number, sizeof number);
  return made;
}

} // namespace terrace::test
