// Declares `io_done` as a CAF message. Include this wherever a behavior handles it.
#pragma once

#include "runtime/io_port.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

// It refers to an operation of this process's ring and may carry a descriptor, so it never leaves the
// process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::runtime::io_done)
