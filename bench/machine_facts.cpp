#include "bench/machine_facts.hpp"

#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>

namespace terrace::bench {

namespace {

#ifdef __clang__
constexpr const char* compiler = __VERSION__; // the version begins with the compiler's name
#else
constexpr const char* compiler = "GCC " __VERSION__;
#endif

/// Returns the text behind `key` and its separator in the first line that begins with `key`.
std::string line_behind(const std::string& path, const std::string& key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key))
      if (size_t at = line.find(separator); at != std::string::npos)
        return line.substr(line.find_first_not_of(" \t", at + 1));
  return {};
}

std::string first_line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Returns the first line that a program prints; empty if there is no such program.
std::string first_line_said_by(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> out(::popen((command + " 2>/dev/null").c_str(), "r"), ::pclose);
  std::array<char, 256> line{};
  if (!out || !std::fgets(line.data(), line.size(), out.get()))
    return {};
  std::string said = line.data();
  return said.substr(0, said.find('\n'));
}

std::string file_system_of(const std::string& folder) {
  struct statfs fs {};
  if (::statfs(folder.c_str(), &fs) != 0)
    return {};
  switch (static_cast<uint64_t>(fs.f_type)) {
    case 0xef53: return "ext4";
    case 0x58465342: return "xfs";
    case 0x01021994: return "tmpfs";
    case 0x9123683e: return "btrfs";
    case 0x794c7630: return "overlay";
    default: return "another one";
  }
}

/// The kernel marks the choice in force: "always [never]".
std::string chosen_in(const std::string& choices) {
  size_t begin = choices.find('['), end = choices.find(']');
  return end == std::string::npos ? choices : choices.substr(begin + 1, end - begin - 1);
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

std::string today() {
  std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::localtime(&now));
  return text.data();
}

} // namespace

std::vector<fact> machine_facts(const std::string& folder, const std::string& terraced) {
  struct utsname kernel {};
  ::uname(&kernel);
  auto kibibytes = std::strtoull(line_behind("/proc/meminfo", "MemTotal", ':').c_str(), nullptr, 10);
  std::vector<fact> all = {
      {"date", today()},
      {"processor", line_behind("/proc/cpuinfo", "model name", ':')},
      {"processors", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN))},
      {"last level cache", first_line_of("/sys/devices/system/cpu/cpu0/cache/index3/size")},
      {"memory", kibibytes == 0 ? "" : std::to_string(kibibytes >> 20) + " GiB"},
      {"huge pages of shared memory",
       chosen_in(first_line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled"))},
      {"kernel", std::string(kernel.sysname) + " " + kernel.release},
      {"system", unquoted(line_behind("/etc/os-release", "PRETTY_NAME", '='))},
      {"file system", file_system_of(folder)},
      {"compiler", compiler},
      {"daemon", first_line_said_by("'" + terraced + "' --version")},
      {"liburing", TERRACE_LIBURING_VERSION},
      {"fio", first_line_said_by("fio --version")},
      {"redis", first_line_said_by("redis-server --version | cut -d' ' -f1-3")},
  };
  std::erase_if(all, [](const fact& each) { return each.value.empty(); });
  return all;
}

std::string load_averages() {
  std::string line = first_line_of("/proc/loadavg");
  size_t end = 0;
  for (int i = 0; i < 3 && end != std::string::npos; ++i)
    end = line.find(' ', end + 1);
  return line.substr(0, end);
}

} // namespace terrace::bench
