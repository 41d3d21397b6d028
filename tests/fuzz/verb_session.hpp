// An input of fuzz_verbs, played: several clients over a whole trust group in this process, over the simulated ring. What
// happens depends on the input alone.
//
// The first byte chooses the group's options. Then follow steps: a byte for what is done, one for the client, what the
// step needs, and one for how much of it is sent and how far the daemon gets before the next step.
//
// Whatever is sent: every request is answered once or its connection ends, and when all clients have gone, nothing that
// they held is left (verb_group.hpp).
#pragma once

#include "tests/fuzz/verb_client.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace terrace::fuzz {

enum class step : uint8_t {
  connect,     ///< without a hello
  greet,       ///< connects and says hello
  close,       ///< its socket
  end_process, ///< also of what it may be reading
  raw,         ///< any bytes: how many, and these
  mutate,      ///< a sample frame with some bytes changed
  pass,        ///< time: 2 to the power of a byte in milliseconds
  stop_reading,
  read_again,
  first_verb, ///< and the others behind it, by their numbers
};
constexpr uint8_t steps = static_cast<uint8_t>(step::first_verb) + protocol::last_request;

constexpr uint8_t step_of(protocol::kind verb) {
  return static_cast<uint8_t>(static_cast<uint8_t>(step::first_verb) + static_cast<uint8_t>(verb) - 1);
}

/// What came of it.
struct session_report {
  std::array<uint32_t, verb_client::verbs> served{}, refused{}; ///< requests by the number of their verb
  uint32_t ended = 0;                                           ///< connections, by the daemon
  uint64_t trace = 0;                                           ///< of all answers
};

/// Aborts the process, with a line that says what does not hold, or throws where the daemon breaks the protocol.
session_report play(std::span<const uint8_t> input);

} // namespace terrace::fuzz
