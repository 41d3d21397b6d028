// Requests out of a few bytes of input, which name what exists: without that no mutation would get past an unknown space
// or lease.
#pragma once

#include "tests/fuzz/input_bytes.hpp"
#include "tests/fuzz/verb_client.hpp"

namespace terrace::fuzz {

struct made_frame {
  std::vector<uint8_t> bytes;
  unique_fd descriptor;
  bool clears_all = false; ///< a clear of everything
};

/// `request` is its id. Verbs without a case of their own are taken from tests/fuzz/sample_frames.cpp.
made_frame make_request(protocol::kind verb, uint64_t request, input_bytes& from, const verb_client& client,
                        const shared_knowledge& shared);

/// The frame of a sample with this id, a few bytes of its body changed.
made_frame make_mutated(uint64_t request, input_bytes& from, protocol::kind& verb);

} // namespace terrace::fuzz
