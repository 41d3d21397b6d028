// Identifiers from the kernel's random source.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"

namespace terrace {

/// Checks that the kernel gives random numbers. Errors: `unsupported`, with the fix, where a container denies it.
result<void> probe_random();

/// Returns an unguessable id from getrandom(2). Aborts if the kernel has no randomness; `probe_random` finds
/// out beforehand.
lease_id random_lease_id();
boot_id random_boot_id();
entry_key_salt random_entry_key_salt();

} // namespace terrace
