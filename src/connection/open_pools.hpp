// The pools of an open space, as sent to clients.
#pragma once

#include "index/space_spec.hpp"
#include "protocol/terrace_generated.h"

namespace terrace {

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec);

} // namespace terrace
