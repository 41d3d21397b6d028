// How extra keys enter the algorithms that have no place of their own for them.
#pragma once

#include "base/digest.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace terrace {

/// Feeds what the parent of a block with extra keys is the hash of: a tag with its version, one byte that says how long
/// the true parent is (0: there is none), the parent, the CBOR of the extra keys. The result is a digest like any parent,
/// so no choice of tokens and keys can be read as a block without keys.
template <class Feed>
void feed_extra_parent(Feed&& feed, const std::optional<digest>& parent, size_t width,
                       std::span<const uint8_t> extra) {
  constexpr std::string_view tag = "terrace extra keys v1";
  feed(std::span(reinterpret_cast<const uint8_t*>(tag.data()), tag.size()));
  auto length = static_cast<uint8_t>(parent ? width : 0);
  feed(std::span<const uint8_t>(&length, 1));
  if (parent)
    feed(std::span<const uint8_t>(parent->bytes).first(width));
  feed(extra);
}

} // namespace terrace
