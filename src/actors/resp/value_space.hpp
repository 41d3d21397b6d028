// The space of the values of Redis clients, and the names of values in it.
#pragma once

#include "base/digest.hpp"
#include "index/sha256.hpp"
#include "index/space_spec.hpp"

#include <cstdint>
#include <string_view>

namespace terrace::resp {

constexpr uint64_t value_bytes_most = space_spec::object_bytes_max / 2; ///< as in Redis: 512 MiB

/// Returns the spec; there is one such space per trust group. Its objects have sizes of their own, which no
/// client of another protocol knows.
space_spec value_space();

/// True for a space that only this protocol may open: a request from another protocol would name wrong sizes.
bool is_value_space(const space_spec& spec);

/// Returns the SHA-256 of the key, whatever its length. No two keys with one digest are known, so the key is
/// not stored with the value.
digest name_of(sha256& with, std::string_view key);

} // namespace terrace::resp
