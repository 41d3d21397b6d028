// Descriptors arrive as numbers in a completion (accept) or in a control buffer (recvmsg). Until the actor's
// handler has seen the message, the message owns them: if the actor ends first, they are closed with it.
#pragma once

#include "runtime/io_port.hpp"

#include <caf/mailbox_element.hpp>

namespace terrace::runtime {

bool carries_descriptors(const io_request& request, int32_t result);

/// A message `io_done` that closes the descriptors unless its content was looked at, which CAF does only to
/// have a living actor handle it.
caf::mailbox_element_ptr make_descriptor_message(const io_done& done, const io_request& request);

} // namespace terrace::runtime
