// Identifiers from the kernel's random source.
#pragma once

#include "base/ids.hpp"

namespace terrace {

/// Unguessable: straight from getrandom(2). Aborts if the kernel has no randomness to give, which it always has after
/// early boot.
lease_id random_lease_id();
boot_id random_boot_id();

} // namespace terrace
