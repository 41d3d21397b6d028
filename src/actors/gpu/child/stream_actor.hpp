// STREAM: performs the copies of one direction in the process of a GPU.
//
// It owns a copy_stream (gpu/copy_stream.hpp). Its completions come through an eventfd in the ring. Nothing
// in it waits for an engine: cuMemHostUnregister, which is called for regions, pages and arenas of all
// clients, returns when all streams of the process are idle (docs/decisions/094).
#pragma once

#include "gpu/copy_stream.hpp"
#include "runtime/home.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>

namespace terrace::actors {

struct stream_copy {
  uint64_t id = 0;
  std::shared_ptr<gpu::memory> region;
  std::shared_ptr<gpu::memory> staging;
  std::vector<gpu::strided_copy> copies;
  std::shared_ptr<gpu::attached_page> page; ///< null: no signal
  gpu::generation signal;                   ///< written after the copies
  uint32_t signals = 0;                     ///< number of signals; their slots are consecutive
};
/// Tells the link that a copy has ended.
struct stream_over {
  uint64_t id = 0;
  error failure;
};

using stream_actor = caf::typed_actor<caf::reacts_to<stream_copy>>;
using stream_owner = caf::typed_actor<caf::reacts_to<stream_over>>;

/// Errors: the driver's.
result<stream_actor> spawn_stream(caf::actor_system& system, const runtime::home& home,
                                  std::shared_ptr<gpu::device> device, gpu::direction way,
                                  stream_owner owner);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::stream_copy)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::stream_over)
