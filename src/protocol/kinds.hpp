// The kinds of frames, one per row of verbs.def. The kind of an answer is its request's with the high bit
// set; `error` may answer any request.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace terrace::protocol {

constexpr uint32_t version = 1;

enum class kind : uint16_t {
#define TERRACE_VERB(NAME, TABLE, NUMBER, ...) NAME = NUMBER,
#include "protocol/verbs.def"
  error = 0x7fff,
};

constexpr uint16_t answer_bit = 0x8000;

namespace detail {

struct verb_row {
  uint16_t number;
  uint16_t request_descriptors;
  uint16_t answer_descriptors;
  std::string_view name;
  std::string_view answer_name;
};

inline constexpr verb_row verb_rows[] = {
#define TERRACE_VERB(NAME, TABLE, NUMBER, FDS, ANSWER_FDS, ...)                                              \
  {NUMBER, FDS, ANSWER_FDS, #NAME, "answer to " #NAME},
#include "protocol/verbs.def"
};

static_assert(
    [] {
      uint16_t expected = 1;
      for (const verb_row& row : verb_rows)
        if (row.number != expected++)
          return false;
      return true;
    }(),
    "the rows of verbs.def stand in the order of their numbers: 1, 2, ... without a gap");

} // namespace detail

/// Requests have the numbers 1 to this.
constexpr uint16_t last_request = std::size(detail::verb_rows);

/// Request id 0 belongs to no request: an `error` with it applies to the whole connection.
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

/// The maximum number of descriptors of a frame of this kind. The body decides whether it must have them.
constexpr uint16_t descriptors_allowed(kind k) {
  auto number = static_cast<uint16_t>(k);
  if (is_request(k))
    return detail::verb_rows[number - 1].request_descriptors;
  return k != kind::error && is_answer(k) ? detail::verb_rows[(number & ~answer_bit) - 1].answer_descriptors
                                          : 0;
}

/// Requests that end or give back something, so that others can continue. They are served even when a
/// connection has used up its credits.
constexpr bool gives_back(kind k) {
  return k == kind::cancel || k == kind::release || k == kind::abort || k == kind::unregister_region ||
         k == kind::end_inference;
}
/// Beyond its credits, a connection may have this many of them in flight, each of at most this many bytes.
constexpr uint32_t giving_back_requests_max = 64;
constexpr uint64_t giving_back_bytes_max = 4 << 10;

/// "lookup", or "answer to lookup" for the kind of an answer.
std::string_view to_string(kind k);

inline std::string_view to_string(kind k) {
  auto number = static_cast<uint16_t>(k);
  if (k == kind::error)
    return "error";
  if (is_request(k))
    return detail::verb_rows[number - 1].name;
  return is_answer(k) ? detail::verb_rows[(number & ~answer_bit) - 1].answer_name : "unknown";
}

} // namespace terrace::protocol
