// Frames as bytes, for requests that must be equal on both sides of a comparison: a load generator knows no
// protocol.
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

/// A connection that has only shaken hands and opened a space.
class raw_space {
 public:
  raw_space(const std::string& socket, const client::space_spec& spec);

  /// Returns a lookup of these digests in the space, as it goes over the wire. Its request id is always the
  /// same, so only one may be in flight.
  std::vector<uint8_t> lookup_frame(std::span<const digest> digests) const;

  /// Sends a frame and reads the frame that comes back; returns the length of the latter, header included.
  size_t round_trip(std::span<const uint8_t> frame);

  unique_fd release() { return client_.release(); }

 private:
  test::received ask(std::span<const uint8_t> frame);

  test::raw_client client_;
  uint32_t space_ = 0;
};

} // namespace terrace::bench
