#include "runtime/thread_priority.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace::runtime {

void be_nice(int nice) {
  if (nice > 0)
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice); // lowering is always allowed
}

} // namespace terrace::runtime
