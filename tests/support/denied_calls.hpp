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

struct denied_value {
  uint32_t argument = 0;
  uint16_t compare = BPF_JEQ;
  uint32_t value = 0;
};
inline bool deny_call_with(uint32_t number, uint16_t error_number, const denied_value& of) {
  const uint32_t place = offsetof(seccomp_data, args) + of.argument * sizeof(uint64_t);
  const auto jump = static_cast<uint16_t>(BPF_JMP | of.compare | BPF_K);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place),
      BPF_JUMP(jump, of.value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/// From now on this thread, and every thread and program that it starts, gets `error_number` from this system
/// call if its second argument is at least `from` (0: always). Cannot be undone. Returns false if the kernel
/// has no seccomp filters.
inline bool deny_call(uint32_t number, uint16_t error_number, uint32_t from = 0) {
  return deny_call_with(number, error_number, {.argument = 1, .compare = BPF_JGE, .value = from});
}
/// Denies the call if its argument with this number, counted from 0, is exactly `value`.
inline bool deny_exactly(uint32_t number, uint16_t error_number, uint32_t argument, uint32_t value) {
  return deny_call_with(number, error_number, {.argument = argument, .compare = BPF_JEQ, .value = value});
}

} // namespace terrace::test
