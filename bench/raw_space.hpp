// Frames as bytes, for what must be the same on both sides of a comparison: a load generator that knows no protocol.
#pragma once

#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "client/types.hpp"
#include "tests/support/raw_client.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace::bench {

/// A connection that has shaken hands and opened a space, and nothing else.
class raw_space {
 public:
  raw_space(const std::string& socket, const client::space_spec& spec);

  /// A lookup of these digests in the space, as it goes over the wire. Its request id is always the same: one in flight.
  std::vector<uint8_t> lookup_frame(std::span<const digest> digests) const;

  /// Sends a frame and reads the frame that comes back; the length of that, header included.
  size_t round_trip(std::span<const uint8_t> frame);

  unique_fd release() { return client_.release(); }

 private:
  test::received ask(std::span<const uint8_t> frame);

  test::raw_client client_;
  uint32_t space_ = 0;
};

} // namespace terrace::bench
