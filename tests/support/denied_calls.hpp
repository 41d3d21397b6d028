// System calls that fail, for tests of what a sandbox denies: real seccomp filters of the calling thread.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace::test {

/// From now on this thread, and every thread and program that it starts, gets `error_number` from this system call if
/// its second argument is at least `from` (0: always). Cannot be undone. False: the kernel has no seccomp filters.
inline bool deny_call(uint32_t number, uint16_t error_number, uint32_t from = 0) {
  constexpr uint32_t second_argument = offsetof(seccomp_data, args) + sizeof(uint64_t);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second_argument),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

} // namespace terrace::test
