// Tags of a request, which are part of the keys of its objects.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"

#include <span>
#include <string>
#include <vector>

namespace terrace {

constexpr size_t tags_max = 16;
constexpr size_t tag_bytes_max = 256;

/// Errors: `bad_request` for too many tags, or one that is empty or too long.
result<void> validate_tags(std::span<const std::string> tags);

/// Replaces each digest by SHA-256(tag "terrace tags v1", number of tags, each tag with its length, digest), truncated
/// to `width` bytes, the width of the digests. Tags are a set: order and repetition do not matter. Without tags nothing
/// changes. Tags are applied last, to the digests of chunks, so that they have the same effect for clients that send
/// tokens and those that send digests, and a parent is always the engine's own digest.
void apply_tags(std::span<const std::string> tags, size_t width, std::span<digest> digests);

} // namespace terrace
