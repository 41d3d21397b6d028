// A well-formed frame of every request, and some answers: the seeds of fuzz_frames, and what the tests of the protocol
// take apart.
#pragma once

#include "protocol/frame_builder.hpp"

#include <cstdint>
#include <vector>

namespace terrace::protocol::test {

struct sample_frame {
  protocol::kind kind{};
  uint16_t descriptors = 0;
  std::vector<uint8_t> bytes; ///< header and body
};

std::vector<sample_frame> sample_frames();

} // namespace terrace::protocol::test
