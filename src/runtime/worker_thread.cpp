#include "runtime/worker_thread.hpp"
#include "runtime/thread_priority.hpp"

#include <pthread.h>

#include <string>

namespace terrace::runtime {

bool prepare_worker_thread(size_t index, uint32_t slice_us) {
  ::pthread_setname_np(::pthread_self(), ("worker-" + std::to_string(index)).c_str());
  return ask_for_slices(slice_us);
}

} // namespace terrace::runtime
