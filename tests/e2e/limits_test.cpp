// System limits that are too low for the daemon: one line names the limit, instead of a failure somewhere.
#include "workload.hpp"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>

namespace terrace::e2e {
namespace {

constexpr uid_t nobody = 65534;

void limit(__rlimit_resource what, rlim_t value) {
  rlimit both{value, value};
  ::setrlimit(what, &both);
}

/// Makes this system call fail with EPERM.
void deny(uint32_t number) {
  std::array<sock_filter, 4> rules{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/// A configuration in a folder that everybody may write.
class configured {
 public:
  configured() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
    write_file(folder_ / "terraced.toml", "[[listen]]\npath = \"" + folder_.path() +
                                              "/s\"\n[host]\nbytes = \"32MiB\"\n[disk]\npath = \"" +
                                              folder_.path() +
                                              "\"\nbytes = \"64MiB\"\n[metrics]\naddress = \"\"\n");
  }

  /// The daemon does not start, and its last line gives the reason.
  void expect_refusal(const std::string& why, const std::string& fix, const std::function<void()>& before) {
    auto ended = run({program("TERRACED"), "--config", folder_ / "terraced.toml"}, {}, before);
    if (ended.exit_code == 127)
      GTEST_SKIP() << "the program cannot be executed by another user";
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    EXPECT_NE(ended.err.find(why), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(fix), std::string::npos) << ended.err;
    if (!test::sanitized("address")) { // its search for leaks starts a thread, and complains
      EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    }
  }

 private:
  temporary_folder folder_;
};

TEST(Limits, FilesThatMayNotBecomeLargeEnough) {
  for (rlim_t bytes : {512, 40 << 20})
    configured().expect_refusal("the limit on file sizes is " + std::to_string(bytes) + " bytes", "ulimit -f",
                                [bytes] { limit(RLIMIT_FSIZE, bytes); });
}

TEST(Limits, TooFewDescriptors) {
  configured().expect_refusal("the limit on open files is 12", "ulimit -n", [] { limit(RLIMIT_NOFILE, 12); });
}

TEST(Limits, TooFewThreads) {
  configured().expect_refusal("threads could be started", "ulimit -u", [] {
    limit(RLIMIT_NPROC, 1);
    if (::geteuid() == 0) // root has no such limit
      (void) !::setresuid(nobody, nobody, nobody);
  });
}

TEST(Limits, RandomNumbersThatAreDenied) {
  configured().expect_refusal("getrandom failed", "seccomp", [] { deny(SYS_getrandom); });
}

void lock_at_most(rlim_t bytes) {
  ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0); // a process with this capability has no limit
  limit(RLIMIT_MEMLOCK, bytes);
}

/// Returns whether this kernel charges rings to the limit on locked memory, so that there is none with a
/// limit of 0.
bool rings_are_charged() {
  pid_t child = ::fork();
  if (child == 0) {
    lock_at_most(0);
    __user_cap_header_struct self{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    ::syscall(SYS_capget, &self, sets.data());
    sets[0].effective &= ~(1U << CAP_IPC_LOCK); // a new program would not have the capability
    ::syscall(SYS_capset, &self, sets.data());
    std::array<uint64_t, 15> params{}; // struct io_uring_params has 120 bytes
    ::_exit(::syscall(SYS_io_uring_setup, 8, params.data()) < 0 && errno == ENOMEM ? 1 : 0);
  }
  return test::reap(child) == 1;
}

TEST(Limits, NoLockedMemoryMeansPlainBuffersOrALineWhereTheKernelGivesNoRing) {
  if (rings_are_charged()) {
    configured().expect_refusal("io_uring_setup failed with ENOMEM", "limit on locked memory, which is 0 B",
                                [] { lock_at_most(0); });
    return;
  }
  daemon_under_test daemon({.before_exec = [] { lock_at_most(0); }});
  EXPECT_EQ(tester(daemon.socket()).store(chain_of(1, 1)), 1U);
}

TEST(Limits, LittleLockedMemoryIsEnoughForPlainBuffers) {
  daemon_under_test daemon({.disk_bytes = 96 * mebibyte, .before_exec = [] { lock_at_most(64 << 10); }});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  std::vector<std::vector<digest>> chains;
  for (uint64_t seed = 0; seed < 12; ++seed)
    chains.push_back(chain_of(seed, 4));
  for (const auto& chain : chains)
    client.store(chain);
  for (const auto& chain : chains) // from host memory and from disk
    EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
}

} // namespace
} // namespace terrace::e2e
