// How extra keys are hashed by algorithms that have no field for them.
#pragma once

#include "base/digest.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace terrace {

/// Feeds the input of the parent digest for a block with extra keys: a tag with a version, one byte with the
/// length of the true parent (0: none), the parent, the CBOR of the extra keys. The result is used like any
/// parent digest, so no choice of tokens and keys collides with a block without keys.
template <class Feed>
void feed_extra_parent(Feed&& feed, const std::optional<digest>& parent, size_t width,
                       std::span<const uint8_t> extra) {
  constexpr std::string_view tag = "terrace extra keys v2";
  feed(std::span(reinterpret_cast<const uint8_t*>(tag.data()), tag.size()));
  auto length = static_cast<uint8_t>(parent ? width : 0);
  feed(std::span<const uint8_t>(&length, 1));
  if (parent)
    feed(std::span<const uint8_t>(parent->bytes).first(width));
  feed(extra);
}

} // namespace terrace
