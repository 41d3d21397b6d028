#include "runtime/thread_priority.hpp"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace::runtime {

namespace {

/// The first version of the kernel's struct sched_attr, which glibc declares only from 2.41 on.
struct scheduling {
  uint32_t size = sizeof(scheduling);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(scheduling) == 48);

} // namespace

void be_nice(int more) {
  constexpr int lowest = 19;
  scheduling now; // the filters of system calls that deployments use have no getpriority(2)
  if (more > 0 && ::syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) == 0) // lowering is always allowed
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), std::min(now.nice + more, lowest));
}

bool ask_for_slices(uint32_t us) {
  if (us == 0)
    return true;
  scheduling wanted;
  if (::syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) != 0 || wanted.policy != SCHED_OTHER)
    return false; // an operator chose another class, which stays
  wanted.runtime_ns = uint64_t{us} * 1000;
  return ::syscall(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

void let_others_run() { ::sched_yield(); }

bool prepare_worker_thread(const std::string& name, uint32_t slice_us) {
  ::pthread_setname_np(::pthread_self(), name.c_str());
  return ask_for_slices(slice_us);
}

} // namespace terrace::runtime
