// The kinds of frames. An answer's kind is its request's with the high bit set; `error` answers any request.
#pragma once

#include <cstdint>
#include <string_view>

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
  end_inference = 16,
  clear = 17,
  await_lookup = 18,
  policies = 19,
  set_policy = 20,
  error = 0x7fff,
};

constexpr uint16_t answer_bit = 0x8000;
constexpr uint16_t last_request = static_cast<uint16_t>(kind::set_policy);

/// Request id 0 belongs to no request: an `error` that carries it concerns the whole connection.
constexpr uint64_t connection_request_id = 0;

constexpr kind answer_to(kind request) {
  return static_cast<kind>(static_cast<uint16_t>(request) | answer_bit);
}

constexpr bool is_request(kind k) {
  return static_cast<uint16_t>(k) >= 1 && static_cast<uint16_t>(k) <= last_request;
}

constexpr bool is_answer(kind k) {
  auto number = static_cast<uint16_t>(k);
  return k == kind::error || ((number & answer_bit) &&
                              is_request(static_cast<kind>(number & static_cast<uint16_t>(~answer_bit))));
}

/// How many descriptors a frame of this kind may carry. Whether it must is a matter of its body.
constexpr uint16_t descriptors_allowed(kind k) {
  return k == kind::register_region || k == answer_to(kind::map_segment) ? 1 : 0;
}

/// "lookup", or "answer to lookup" for the kind of an answer.
std::string_view to_string(kind k);

} // namespace terrace::protocol
