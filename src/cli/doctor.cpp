#include "cli/doctor.hpp"

#include "base/unique_fd.hpp"
#include "cli/units.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace terrace::cli {

namespace {

namespace files = std::filesystem;

finding good(std::string name, std::string text) {
  return {std::move(name), health::ok, std::move(text), {}};
}

finding doubtful(std::string name, std::string text, std::string fix) {
  return {std::move(name), health::warning, std::move(text), std::move(fix)};
}

finding bad(std::string name, std::string text, std::string fix) {
  return {std::move(name), health::failure, std::move(text), std::move(fix)};
}

std::string error_text(int number) { return std::strerror(number); }

/// Empty if it cannot be read.
std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  while (!all.empty() && (all.back() == '\n' || all.back() == ' '))
    all.pop_back();
  return all;
}

std::string folder_of(const std::string& path) {
  auto parent = files::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// ---- the machine ----

finding examine_kernel() {
  utsname name{};
  ::uname(&name);
  int major = 0, minor = 0;
  const char* end = name.release + std::strlen(name.release);
  auto after = std::from_chars(name.release, end, major);
  if (after.ptr < end)
    std::from_chars(after.ptr + 1, end, minor);
  std::string text = std::string("Linux ") + name.release;
  if (major < 5 || (major == 5 && minor < 15))
    return bad("kernel", text, "Linux 5.15 or newer is needed");
  return good("kernel", text);
}

finding examine_io_uring(const std::string& root) {
  alignas(8) std::byte parameters[120]{}; // io_uring_params
  unique_fd ring(static_cast<int>(::syscall(SYS_io_uring_setup, 8, parameters)));
  if (ring)
    return good("io_uring", "rings can be made");
  const int refused = errno;
  const std::string disabled = contents(root + "/proc/sys/kernel/io_uring_disabled");
  if (!disabled.empty() && disabled != "0")
    return bad("io_uring", "the sysctl kernel.io_uring_disabled is " + disabled,
               "sysctl kernel.io_uring_disabled=0");
  if (refused == EPERM || refused == EACCES || refused == ENOSYS)
    return bad("io_uring", error_text(refused),
               "in a container, use a seccomp profile that allows io_uring_setup, io_uring_enter and "
               "io_uring_register "
               "(packaging/seccomp.json)");
  return bad("io_uring", error_text(refused), "raise RLIMIT_MEMLOCK or the container's memory limit");
}

finding examine_memlock(const std::string&) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY)
    return good("locked memory", "unlimited");
  const std::string text = "at most " + readable_bytes(limit.rlim_cur);
  if (limit.rlim_cur < (64ULL << 20))
    return doubtful("locked memory", text,
                    "buffers are not registered with the disk's ring beyond that: LimitMEMLOCK=infinity in "
                    "systemd, --ulimit "
                    "memlock=-1 in a container");
  return good("locked memory", text);
}

finding examine_large_pages(const std::string& root) {
  std::string modes = contents(root + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  auto from = modes.find('['), to = modes.find(']');
  if (from == std::string::npos || to == std::string::npos || to < from)
    return doubtful(
        "large pages", "this kernel has none for shared memory",
        "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE: copies into memory of 4 KiB pages are slower");
  std::string mode = modes.substr(from + 1, to - from - 1);
  if (mode == "deny")
    return doubtful("large pages", "denied for shared memory",
                    "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return good("large pages", mode);
}

/// The line "NAME: 123 kB" of /proc/meminfo in bytes; 0: none.
uint64_t of_meminfo(const std::string& root, const std::string& name) {
  std::ifstream file(root + "/proc/meminfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with(name + ":"))
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  return 0;
}

finding examine_memory(const std::string& root, uint64_t host_bytes) {
  const uint64_t available = of_meminfo(root, "MemAvailable");
  const std::string text =
      readable_bytes(available) + " available, host.bytes is " + readable_bytes(host_bytes);
  if (of_meminfo(root, "MemTotal") < host_bytes)
    return bad("memory", text, "lower host.bytes: the machine has less in all");
  if (available < host_bytes)
    return doubtful("memory", text, "lower host.bytes, or free memory: the daemon starts, and may be killed");
  if (available - host_bytes < (1ULL << 30))
    return doubtful("memory", text, "leave at least 1 GiB to the engines and the kernel: lower host.bytes");
  return good("memory", text);
}

/// The least limit in this file of a control group and of those that contain it; UINT64_MAX: none.
uint64_t cgroup_limit(const std::string& top, const files::path& path, const std::string& file) {
  uint64_t least = UINT64_MAX;
  for (files::path group = path;; group = group.parent_path()) {
    const std::string limit = contents(top + group.string() + "/" + file);
    // Version 1 has no "max", but nearly 2^63.
    if (const auto bytes = std::strtoull(limit.c_str(), nullptr, 10); bytes != 0 && bytes < 1ULL << 62)
      least = std::min<uint64_t>(least, bytes);
    if (group == group.parent_path() || group.empty())
      return least;
  }
}

/// A machine may have both versions; either may limit memory.
uint64_t cgroup_limit(const std::string& root) {
  uint64_t least = UINT64_MAX;
  std::istringstream groups(contents(root + "/proc/self/cgroup"));
  for (std::string line;
       std::getline(groups, line);) { // "0::/path" of version 2, "4:memory:/path" of version 1
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, cgroup_limit(root + "/sys/fs/cgroup", path, "memory.max"));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, cgroup_limit(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return least;
}

finding examine_cgroup(const std::string& root, uint64_t host_bytes) {
  const uint64_t limit = cgroup_limit(root);
  if (limit == UINT64_MAX)
    return good("control group", "no limit on memory");
  const std::string text =
      "memory is limited to " + readable_bytes(limit) + ", host.bytes is " + readable_bytes(host_bytes);
  const std::string fix =
      "raise the limit (MemoryMax=, resources.limits.memory) to host.bytes and an eighth more: the arena's "
      "memory is charged to the daemon";
  if (limit < host_bytes)
    return bad("control group", text, fix);
  if (limit < host_bytes + host_bytes / 8)
    return doubtful("control group", text, fix);
  return good("control group", text);
}

// ---- disks: without them the daemon starts with its disk tier off, so that nothing here is a failure ----

constexpr const char* without_disk = ": the daemon starts with its disk tier off";

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct free_at_end {
  void operator()(void* memory) const { std::free(memory); }
};

/// Writes and reads the file in pieces of 1 MiB. Empty, if that works; `rates` gets both in bytes per second.
std::string probe_rates(int file, uint64_t bytes, std::pair<double, double>& rates) {
  constexpr size_t piece = 1 << 20;
  std::unique_ptr<void, free_at_end> memory(std::aligned_alloc(4096, piece));
  if (!memory)
    return error_text(ENOMEM);
  std::memset(memory.get(), 0x5a, piece);
  auto begin = std::chrono::steady_clock::now();
  for (uint64_t at = 0; at < bytes; at += piece)
    if (::pwrite(file, memory.get(), piece, static_cast<off_t>(at)) != static_cast<ssize_t>(piece))
      return "a write failed: " + error_text(errno);
  if (::fdatasync(file) != 0)
    return "fdatasync failed: " + error_text(errno);
  rates.first = static_cast<double>(bytes) / seconds_since(begin);
  begin = std::chrono::steady_clock::now();
  for (uint64_t at = 0; at < bytes; at += piece)
    if (::pread(file, memory.get(), piece, static_cast<off_t>(at)) != static_cast<ssize_t>(piece))
      return "a read failed: " + error_text(errno);
  rates.second = static_cast<double>(bytes) / seconds_since(begin);
  return {};
}

/// The folder, or the nearest existing one above it if the daemon makes it.
std::string existing(const doctor_subject& subject, const std::string& folder) {
  files::path at = folder;
  if (std::find(subject.makes.begin(), subject.makes.end(), folder) != subject.makes.end())
    while (!files::exists(at) && at.has_parent_path() && at != at.parent_path())
      at = at.parent_path();
  return at;
}

finding examine_space(const doctor_subject& subject, const std::string& folder) {
  const uint64_t bytes = subject.disk_bytes / subject.disks.size();
  struct statvfs space {};
  if (::statvfs(existing(subject, folder).c_str(), &space) != 0)
    return doubtful("space on " + folder, error_text(errno) + without_disk,
                    "create the folder on the disk that the tier is to use");
  uint64_t there = 0; // extent files that exist are used again
  std::error_code ignored;
  for (const auto& entry : files::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".extents")
      there += entry.file_size(ignored);
  const uint64_t available = uint64_t{space.f_bavail} * space.f_frsize;
  std::string text = readable_bytes(available) + " free, " + readable_bytes(bytes) + " needed";
  if (there != 0)
    text += ", of which " + readable_bytes(there) + " exist";
  if (available + there < bytes)
    return doubtful("space on " + folder, text + without_disk,
                    "lower disk.bytes, or free space: the file is allocated at start");
  return good("space on " + folder, text);
}

finding examine_disk(const doctor_subject& subject, const std::string& folder,
                     const doctor_options& options) {
  const std::string name = "disk " + folder;
  const std::string there = existing(subject, folder);
  const std::string path = there + "/terrace-doctor." + std::to_string(::getpid());
  unique_fd file(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
  bool direct = bool(file);
  int refused = errno;
  if (!direct && refused == EINVAL) // the file exists, on a file system without direct I/O
    file = unique_fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!file)
    return doubtful(
        name, "no file can be made: " + error_text(refused) + without_disk,
        refused == EACCES || refused == EPERM || refused == EROFS
            ? "give the folder to the daemon's user; under systemd, `terrace doctor --unit` prints "
              "what the unit lacks"
            : "create the folder");
  ::unlink(path.c_str());
  const uint64_t bytes = options.probe_bytes;
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(std::max<uint64_t>(bytes, 4096))) != 0) {
    refused = errno;
    return doubtful(name, "fallocate failed: " + error_text(refused) + without_disk,
                    refused == EOPNOTSUPP
                        ? "use ext4, XFS or btrfs: this file system cannot allocate a file ahead"
                        : "free space on the disk");
  }
  std::string text = direct ? "direct I/O" : "no direct I/O";
  if (there != folder)
    text = "the daemon makes it; " + text;
  if (bytes != 0) {
    std::pair<double, double> rates;
    if (std::string problem = probe_rates(file.get(), bytes, rates); !problem.empty())
      return doubtful(name, problem + without_disk, "see the kernel's log (dmesg) for the device");
    text += ", " + format_rate(rates.first) + " written, " + format_rate(rates.second) +
            " read, one request at a time";
  }
  if (!direct)
    return doubtful(name, text, "use ext4 or XFS on NVMe: without direct I/O each byte is copied once more");
  return good(name, text);
}

// ---- sockets, ports, devices, the clock ----

/// Whether somebody answers at the socket. The address is set if the path fits.
bool answers(const std::string& path, bool& fits) {
  sockaddr_un address{};
  fits = path.size() < sizeof address.sun_path;
  if (!fits)
    return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

finding examine_socket(const doctor_subject& subject, const std::string& path) {
  const std::string name = "socket " + path;
  bool fits = false;
  if (answers(path, fits))
    return good(name, "a daemon answers");
  if (!fits)
    return bad(name, "the path is too long", "choose a path of at most 107 bytes in [[listen]]");
  const std::string folder = existing(subject, folder_of(path));
  if (!files::is_directory(folder))
    return bad(name, "the folder " + folder + " does not exist",
               "systemd makes /run/terrace; otherwise create it for the daemon's user");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return bad(name, "this user may not write to " + folder,
               "run as the daemon's user, or choose another path in [[listen]]");
  return good(name, "no daemon answers; it can be made");
}

const std::string without_metrics = ": the daemon serves without metrics";

finding examine_port(const std::string& address, bool daemon_answers) {
  const std::string name = "metrics " + address;
  auto colon = address.rfind(':');
  if (colon == std::string::npos)
    return doubtful(name, "no port" + without_metrics, "expected HOST:PORT in metrics.address");
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (::getaddrinfo(host.empty() ? nullptr : host.c_str(), address.c_str() + colon + 1, &wanted, &found) != 0)
    return doubtful(name, "the address is not known" + without_metrics,
                    "expected HOST:PORT in metrics.address");
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  unique_fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int one = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0)
    return good(name, "free");
  const int refused = errno;
  if (refused == EADDRINUSE && daemon_answers)
    return good(name, "in use, as by the daemon that answers");
  return doubtful(name, error_text(refused) + without_metrics, "choose another port in metrics.address");
}

finding examine_gpu(const std::string& root) {
  std::error_code ignored;
  size_t devices = 0, closed = 0;
  for (const auto& entry : files::directory_iterator(root + "/dev", ignored)) {
    std::string name = entry.path().filename();
    if (!name.starts_with("nvidia") || name.size() < 7 ||
        name.find_first_not_of("0123456789", 6) != std::string::npos)
      continue;
    ++devices;
    closed += ::access(entry.path().c_str(), R_OK | W_OK) != 0;
  }
  if (devices == 0)
    return good("GPU", "none; engines copy through host memory");
  const std::string text = format_counted(devices, "device");
  if (closed != 0)
    return doubtful("GPU", text + ", of which this user may not open " + std::to_string(closed),
                    "give the daemon's user access to /dev/nvidia* (a group, or DeviceAllow= in systemd)");
  return good("GPU", text);
}

/// The daemon serves without its store, so that nothing here is a failure. What to do stands behind "; " or the last ": write " of
/// what is wrong.
finding examine_remote(const tried_remote& tried) {
  const std::string name = "remote store " + tried.address;
  if (tried.failure.empty())
    return good(name, "a value was written, read and removed");
  std::string text = tried.failure,
              fix = "see docs/remote.md#what-can-happen, and ask again with terrace remote probe";
  for (std::string_view before : {"; ", ": write ", ": check ", ": set ", ": let ", ": give "})
    if (const auto at = text.find(before); at != std::string::npos) {
      fix = text.substr(at + 2);
      text.resize(at);
      break;
    }
  return doubtful(
      name, tried.step + ": " + text + ": the daemon serves without the tier until the store can be used",
      fix);
}

/// Whether the daemon has found something about the path or address.
bool is_told(const doctor_subject& subject, const std::string& what) {
  return std::any_of(subject.told.begin(), subject.told.end(), [&](const finding& each) {
    return each.text.find("\"" + what + "\"") != std::string::npos;
  });
}

finding examine_clock() {
  std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &date);
  constexpr std::time_t year_2025 = 1'735'689'600;
  if (now < year_2025)
    return doubtful("clock", text, "set the clock: log lines and ages of objects follow it");
  return good("clock", text);
}

bool is_under(const std::string& path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

finding examine_unit(const doctor_subject& subject, const std::string& root) {
  const bool installed = files::exists(root + "/lib/systemd/system/terraced.service") ||
                         files::exists(root + "/usr/lib/systemd/system/terraced.service");
  if (!installed)
    return good("systemd", "the unit is not installed");
  if (unit_drop_in(subject).empty() ||
      files::exists(root + "/etc/systemd/system/terraced.service.d/paths.conf"))
    return good("systemd", "the unit may write to all folders");
  doctor_subject sockets = subject;
  sockets.disks.clear();
  const std::string fix =
      "terrace doctor --unit > /etc/systemd/system/terraced.service.d/paths.conf; systemctl daemon-reload";
  if (unit_drop_in(sockets).empty())
    return doubtful("systemd",
                    std::string("the unit may not write to a disk of the configuration") + without_disk, fix);
  return bad("systemd", "the unit may not write to the folder of a socket of the configuration", fix);
}

} // namespace

std::string unit_drop_in(const doctor_subject& subject) {
  std::vector<std::string> folders;
  for (const std::string& disk : subject.disks)
    if (!is_under(disk, "/var/lib/terrace"))
      folders.push_back(disk);
  for (const std::string& socket : subject.sockets)
    if (!is_under(socket, "/run/terrace"))
      folders.push_back(folder_of(socket));
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  if (folders.empty())
    return {};
  std::string text = "[Service]\nReadWritePaths=";
  for (const std::string& folder : folders)
    text += (folder == folders.front() ? "" : " ") + folder;
  // ProtectHome= hides these folders, also from ReadWritePaths=.
  if (std::any_of(folders.begin(), folders.end(), [](const std::string& folder) {
        return is_under(folder, "/home") || is_under(folder, "/root");
      }))
    text += "\nProtectHome=no";
  return text + "\n";
}

std::vector<finding> examine(const doctor_subject& subject, const doctor_options& options) {
  const std::string& root = options.root;
  std::vector<finding> all{examine_kernel(), examine_io_uring(root), examine_memlock(root),
                           examine_large_pages(root)};
  if (subject.host_bytes != 0) {
    all.push_back(examine_memory(root, subject.host_bytes));
    all.push_back(examine_cgroup(root, subject.host_bytes));
  }
  all.insert(all.end(), subject.told.begin(), subject.told.end());
  if (subject.told.empty() && subject.host_bytes != 0)
    all.push_back(good("configuration", "valid"));
  for (const std::string& folder : subject.disks) {
    if (is_told(subject, folder))
      continue;
    all.push_back(examine_space(subject, folder));
    all.push_back(examine_disk(subject, folder, options));
  }
  bool any_answers = false;
  for (const std::string& socket : subject.sockets) {
    bool fits = false;
    any_answers = any_answers || answers(socket, fits);
    if (!is_told(subject, socket))
      all.push_back(examine_socket(subject, socket));
  }
  if (!subject.metrics.empty() && !is_told(subject, subject.metrics))
    all.push_back(examine_port(subject.metrics, any_answers));
  for (const tried_remote& tried : subject.remotes)
    all.push_back(examine_remote(tried));
  all.push_back(examine_gpu(root));
  all.push_back(examine_unit(subject, root));
  all.push_back(examine_clock());
  return all;
}

} // namespace terrace::cli
