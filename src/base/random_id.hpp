// Identifiers from the kernel's random source.
#pragma once

#include "base/ids.hpp"
#include "base/object_key.hpp"

namespace terrace {

/// Unguessable: from getrandom(2). Aborts if the kernel has no randomness, which happens only in early boot.
lease_id random_lease_id();
boot_id random_boot_id();
entry_key_salt random_entry_key_salt();

} // namespace terrace
