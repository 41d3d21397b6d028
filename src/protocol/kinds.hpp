// The kinds of frames. An answer's kind is its request's with the high bit set; `error` answers any request.
#pragma once

#include <cstdint>

namespace terrace::protocol {

constexpr uint32_t version = 1;

enum class kind : uint16_t {
  hello = 1,
  open_space = 2,
  register_region = 3,
  unregister_region = 4,
  map_segment = 5,
  lookup = 6,
  read_lease = 7,
  load = 8,
  store = 9,
  reserve = 10,
  commit = 11,
  abort = 12,
  release = 13,
  cancel = 14,
  status = 15,
  error = 0x7fff,
};

constexpr uint16_t answer_bit = 0x8000;

constexpr kind answer_to(kind request) { return static_cast<kind>(static_cast<uint16_t>(request) | answer_bit); }

} // namespace terrace::protocol
