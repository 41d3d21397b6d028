// Writes the pools of an open space for clients.
#pragma once

#include "index/space_registry.hpp"
#include "protocol/terrace_generated.h"

namespace terrace {

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec);

flatbuffers::Offset<wire::OpenSpaceAnswer> write_open_space_answer(flatbuffers::FlatBufferBuilder& body,
                                                                   const opened_space& space);

} // namespace terrace
