// Checks that several tables share. Internal to this room.
#pragma once

#include "base/error.hpp"
#include "base/printable.hpp"
#include "protocol/bounds.hpp"
#include "protocol/descriptors.hpp"

#include <string>
#include <string_view>

namespace terrace::protocol {

using text = flatbuffers::String;

inline constexpr size_t id_bytes = 16; // size of the ids of leases and boots

inline tl::unexpected<error> refuse(std::string expected) {
  return fail(errc::bad_request, std::move(expected));
}

template <class Vector>
size_t size_of(const Vector* vector) {
  return vector ? vector->size() : 0;
}

inline result<void> check_number(const char* field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most)
    return {};
  return refuse("expected " + std::string(field) + " of " + std::to_string(least) + " to " +
                std::to_string(most) + ", got " + std::to_string(value));
}

inline result<void> check_text(const char* field, const text* value, size_t bytes_max,
                               bool may_be_empty = true) {
  size_t size = size_of(value);
  if (size <= bytes_max && (size > 0 || may_be_empty)) {
    if (value == nullptr || is_utf8(value->string_view()))
      return {};
    return refuse("expected " + std::string(field) + " in UTF-8, got other bytes");
  }
  return refuse("expected " + std::string(field) + " of " + (may_be_empty ? "at most " : "1 to ") +
                std::to_string(bytes_max) + " bytes, got " + std::to_string(size));
}

inline result<void> check_id(const char* field, const byte_vector* value, bool may_be_absent) {
  size_t size = size_of(value);
  if (size == id_bytes || (size == 0 && may_be_absent))
    return {};
  return refuse("expected " + std::string(field) + " of " + std::to_string(id_bytes) + " bytes, got " +
                std::to_string(size));
}

/// Checks that a request's runs are inside any region, and that each object has at least one.
result<void> check_run_lists(const run_vector& runs, const flatbuffers::Vector<uint32_t>* runs_per_object);

// FlatBuffers' verifier checks only the alignment of a vector's length, not that of 8-byte elements after it.
template <class Vector>
result<void> check_aligned(const char* field, const Vector* vector) {
  if (size_of(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % frame_alignment == 0)
    return {};
  return refuse("expected the elements of " + std::string(field) + " on a boundary of " +
                std::to_string(frame_alignment) + " bytes in the frame");
}

} // namespace terrace::protocol
