#include "cli/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace terrace::cli {
namespace {

using ::testing::HasSubstr;
namespace files = std::filesystem;

/// A folder that stands for the root of a machine, and a configuration that fits into it.
class Doctor : public ::testing::Test {
 protected:
  Doctor() {
    std::string name = (files::temp_directory_path() / "terrace-doctor-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    files::create_directories(root_ + "/disk");
    files::create_directories(root_ + "/run");
    write("/proc/meminfo", "MemTotal:       20000000 kB\nMemAvailable:   10000000 kB\n");
    write("/proc/self/cgroup", "0::/kubepods/pod7\n");
    write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
          "always within_size [advise] never deny force\n");
    subject_.host_bytes = 1ULL << 30;
    subject_.sockets = {root_ + "/run/terrace.sock"};
    subject_.disks = {root_ + "/disk"};
    subject_.disk_bytes = 1 << 20;
    subject_.metrics = "";
    options_.root = root_;
    options_.probe_bytes = 1 << 20;
  }
  ~Doctor() override { files::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    files::create_directories(files::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  finding about(const std::string& name) {
    for (finding& each : examine(subject_, options_))
      if (each.name == name || each.name.starts_with(name + " "))
        return each;
    ADD_FAILURE() << "nothing about " << name;
    return {};
  }

  std::string root_;
  doctor_subject subject_;
  doctor_options options_;
};

TEST_F(Doctor, FindsNothingOnAMachineThatHasAll) {
  for (const finding& each : examine(subject_, options_)) {
    EXPECT_NE(each.state, health::failure) << each.name << ": " << each.text;
    EXPECT_EQ(each.fix.empty(), each.state == health::ok) << each.name;
  }
  EXPECT_THAT(about("disk").text, HasSubstr("read, one request at a time"));
  EXPECT_TRUE(files::is_empty(subject_.disks.front())); // the probe is gone
}

TEST_F(Doctor, ComparesHostBytesWithMemory) {
  subject_.host_bytes = 64ULL << 30;
  EXPECT_EQ(about("memory").state, health::failure);
  EXPECT_THAT(about("memory").fix, HasSubstr("lower host.bytes"));
  subject_.host_bytes = 12ULL << 30;
  EXPECT_EQ(about("memory").state, health::warning) << "the daemon starts";
  subject_.host_bytes = 9ULL << 30;
  EXPECT_EQ(about("memory").state, health::warning);
}

TEST_F(Doctor, ComparesHostBytesWithTheNearestLimitOfAControlGroup) {
  EXPECT_EQ(about("control group").text, "no limit on memory");
  write("/sys/fs/cgroup/kubepods/pod7/memory.max", "max\n");
  write("/sys/fs/cgroup/kubepods/memory.max", "1073741823\n");
  EXPECT_EQ(about("control group").state, health::failure);
  write("/sys/fs/cgroup/kubepods/memory.max", "1073741824\n");
  EXPECT_EQ(about("control group").state, health::warning) << "the daemon starts";
  EXPECT_THAT(about("control group").fix, HasSubstr("resources.limits.memory"));
  write("/sys/fs/cgroup/kubepods/memory.max", "2147483648\n");
  EXPECT_EQ(about("control group").state, health::ok);
}

TEST_F(Doctor, KnowsLimitsOfBothVersionsOfControlGroups) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/c\n");
  write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"); // none
  EXPECT_EQ(about("control group").text, "no limit on memory");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741823\n");
  EXPECT_EQ(about("control group").state, health::failure);
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(about("control group").state, health::ok);
  write("/sys/fs/cgroup/c/memory.max", "1073741824\n");
  EXPECT_EQ(about("control group").state, health::warning);
}

TEST_F(Doctor, SaysWhichLargePagesThereAre) {
  EXPECT_EQ(about("large pages").text, "advise");
  write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise never [deny] force\n");
  EXPECT_EQ(about("large pages").state, health::warning);
  files::remove(root_ + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  EXPECT_THAT(about("large pages").fix, HasSubstr("CONFIG_TRANSPARENT_HUGEPAGE"));
}

TEST_F(Doctor, SaysThatADiskIsMissingOrTooSmall) {
  subject_.disk_bytes = 1ULL << 60;
  EXPECT_THAT(about("space on").fix, HasSubstr("lower disk.bytes"));
  EXPECT_EQ(about("space on").state, health::warning);
  subject_.disks = {root_ + "/none"};
  EXPECT_EQ(about("space on").state, health::warning) << "the daemon starts without its disk tier";
  EXPECT_THAT(about("disk").text, HasSubstr("starts with its disk tier off"));
  EXPECT_EQ(about("disk").fix, "create the folder");
}

TEST_F(Doctor, FoldersThatTheDaemonMakesAreNotMissing) {
  subject_.disks = {root_ + "/none/deep"};
  subject_.sockets = {root_ + "/run2/terrace/terrace.sock"};
  subject_.makes = {root_ + "/none/deep", root_ + "/run2/terrace"};
  EXPECT_EQ(about("space on").state, health::ok);
  EXPECT_EQ(about("disk").state, health::ok);
  EXPECT_THAT(about("disk").text, HasSubstr("the daemon makes it"));
  EXPECT_EQ(about("socket").state, health::ok);
  EXPECT_FALSE(files::exists(root_ + "/none")) << "the doctor makes nothing";
}

TEST_F(Doctor, RepeatsWhatTheDaemonSaysAndAddsNothingAboutIt) {
  subject_.sockets = {root_ + "/none/terrace.sock"};
  subject_.told = {
      {"configuration", health::failure, "listen.path is \"" + subject_.sockets[0] + "\", ...", "fix"}};
  EXPECT_EQ(about("configuration").state, health::failure);
  for (const finding& each : examine(subject_, options_))
    EXPECT_FALSE(each.name.starts_with("socket")) << each.text;
}

TEST_F(Doctor, CountsExtentFilesThatExist) {
  write("/disk/terrace.extents", std::string(4096, 'x'));
  EXPECT_THAT(about("space on").text, HasSubstr("of which 4.00 KiB exist"));
}

TEST_F(Doctor, KnowsADaemonThatAnswers) {
  EXPECT_THAT(about("socket").text, HasSubstr("no daemon answers"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, subject_.sockets.front().c_str());
  int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening, 8), 0);
  EXPECT_EQ(about("socket").text, "a daemon answers");
  ::close(listening);
}

TEST_F(Doctor, SaysWhatIsWrongWithASocket) {
  subject_.sockets = {root_ + "/none/terrace.sock"};
  EXPECT_EQ(about("socket").state, health::failure) << "the start is refused";
  subject_.sockets = {"/" + std::string(200, 'x')};
  EXPECT_THAT(about("socket").fix, HasSubstr("107 bytes"));
}

TEST_F(Doctor, TriesThePortOfMetrics) {
  subject_.metrics = "127.0.0.1:0";
  EXPECT_EQ(about("metrics").text, "free");
  subject_.metrics = "nowhere";
  EXPECT_THAT(about("metrics").text, HasSubstr("no port"));
  subject_.metrics = "no.such.host.invalid:1";
  EXPECT_THAT(about("metrics").text, HasSubstr("the address is not known"));
}

TEST_F(Doctor, FindsAPortThatIsTaken) {
  int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage address{};
  address.ss_family = AF_INET;
  socklen_t length = sizeof(sockaddr);
  ASSERT_EQ(::bind(taken, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);
  uint16_t port = 0;
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + 2, 2);
  subject_.metrics = "127.0.0.1:" + std::to_string(__builtin_bswap16(port));
  EXPECT_EQ(about("metrics").state, health::warning) << "the daemon serves without metrics";
  EXPECT_THAT(about("metrics").fix, HasSubstr("another port"));
  ::close(taken);
}

TEST_F(Doctor, SaysWhetherTheStoreOfARemoteTierCanBeUsed) {
  subject_.remotes = {{"10.0.0.7:6379", "", ""}};
  EXPECT_EQ(about("remote store 10.0.0.7:6379").state, health::ok);
  struct {
    const char *failure, *text, *fix;
  } constexpr cases[] = {
      {"it cannot be reached: Connection refused; check that the server runs",
       "connect: it cannot be reached: Connection refused: the daemon serves", "check that the server runs"},
      {"it is a node of a cluster: write cluster://10.0.0.7:6379 as address",
       "connect: it is a node of a cluster: the daemon", "write cluster://10.0.0.7:6379 as address"},
      {"the server refuses the password: check user and password_file (it says: WRONGPASS)",
       "connect: the server refuses the password: the", "check user and password_file (it says: WRONGPASS)"},
      {"the store refuses a command: ERR", "the store refuses a command: ERR: the daemon serves",
       "terrace remote probe"},
  };
  for (const auto& each : cases) {
    subject_.remotes = {{"10.0.0.7:6379", "connect", each.failure}};
    const finding found = about("remote store");
    EXPECT_EQ(found.state, health::warning) << "the daemon starts without it";
    EXPECT_THAT(found.text, HasSubstr(each.text));
    EXPECT_THAT(found.fix, HasSubstr(each.fix));
  }
}

TEST_F(Doctor, CountsGpus) {
  EXPECT_THAT(about("GPU").text, HasSubstr("none"));
  write("/dev/nvidia0", "");
  write("/dev/nvidia1", "");
  write("/dev/nvidiactl", "");
  EXPECT_EQ(about("GPU").text, "2 devices");
}

TEST_F(Doctor, SaysWhatTheUnitLacks) {
  EXPECT_EQ(about("systemd").text, "the unit is not installed");
  write("/lib/systemd/system/terraced.service", "");
  EXPECT_EQ(about("systemd").state, health::failure);
  auto sockets = std::exchange(subject_.sockets, {"/run/terrace/terrace.sock"});
  EXPECT_EQ(about("systemd").state, health::warning) << "the daemon starts without its disk tier";
  subject_.sockets = sockets;
  EXPECT_THAT(about("systemd").fix, HasSubstr("terrace doctor --unit"));
  write("/etc/systemd/system/terraced.service.d/paths.conf", "");
  EXPECT_EQ(about("systemd").state, health::ok);
}

TEST(DoctorUnit, NamesTheFoldersThatTheUnitMayNotWriteTo) {
  doctor_subject subject;
  EXPECT_EQ(unit_drop_in(subject), "");
  subject.disks = {"/mnt/nvme1", "/var/lib/terrace/a", "/mnt/nvme0", "/var/lib/terrace2"};
  EXPECT_EQ(unit_drop_in(subject), "[Service]\nReadWritePaths=/mnt/nvme0 /mnt/nvme1 /var/lib/terrace2\n");
  subject.disks = {"/home/kv"};
  subject.sockets = {"/srv/terrace.sock"};
  EXPECT_EQ(unit_drop_in(subject), "[Service]\nReadWritePaths=/home/kv /srv\nProtectHome=no\n");
}

} // namespace
} // namespace terrace::cli
