// Descriptors arrive as numbers in a completion (accept) or in a control buffer (recvmsg). The message owns
// them until the actor's handler has received it; if the actor ends first, they are closed with the message.
#pragma once

#include "runtime/io_port.hpp"

#include <caf/mailbox_element.hpp>

namespace terrace::runtime {

bool carries_descriptors(const io_request& request, int32_t result);

/// An `io_done` message that closes the descriptors unless its content was accessed, which CAF does only when
/// a living actor handles it.
caf::mailbox_element_ptr make_descriptor_message(const io_done& done, const io_request& request);

} // namespace terrace::runtime
