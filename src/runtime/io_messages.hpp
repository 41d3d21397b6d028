// `io_done` as a message of CAF. Include this wherever a behaviour handles it.
#pragma once

#include "runtime/io_port.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

// It names an operation of this process's ring and may carry a descriptor: it never crosses a process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::runtime::io_done)
