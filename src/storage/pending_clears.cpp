#include "storage/pending_clears.hpp"

#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "storage/volume_device.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

namespace terrace {

namespace {

constexpr std::string_view first_line = "terrace pending clears 1";
constexpr size_t record_bytes_max = 64 << 10;

std::string hex_of(uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, value);
  return text.data();
}

template <size_t N>
bool parse_hex(std::string_view text, std::array<uint8_t, N>& bytes) {
  if (text.size() != 2 * N)
    return false;
  for (size_t i = 0; i < N; ++i) {
    const char* end = text.data() + 2 * i + 2;
    if (auto read = std::from_chars(end - 2, end, bytes[i], 16); read.ec != std::errc() || read.ptr != end)
      return false;
  }
  return true;
}

std::string encode(const std::string& file, const std::vector<pending_clear>& clears) {
  std::string text = std::string(first_line) + "\nfile " + file + "\n";
  for (const pending_clear& clear : clears)
    text += (clear.space ? "space " + to_hex(digest{*clear.space}) : std::string("all -")) + " " +
            to_hex(clear.volume) + " " + std::to_string(clear.epoch) + " " + to_hex(clear.made_since) + "\n";
  return text + "checksum " + hex_of(XXH3_64bits(text.data(), text.size())) + "\n";
}

std::optional<pending_clear> decode_line(const std::string& line) {
  std::istringstream words(line);
  std::string text, space, volume, since, rest;
  pending_clear clear;
  if (!(words >> text >> space >> volume >> clear.epoch >> since) || words >> rest)
    return std::nullopt;
  if (text == "space" ? !parse_hex(space, clear.space.emplace()) : text != "all")
    return std::nullopt;
  if (!parse_hex(volume, clear.volume.bytes) || !parse_hex(since, clear.made_since.bytes))
    return std::nullopt;
  return clear;
}

/// Nullopt: the record is damaged, or of another version.
std::optional<std::vector<pending_clear>> decode(const std::string& text, const std::string& file) {
  size_t sum = text.rfind("checksum ");
  if (sum == std::string::npos ||
      text.substr(sum) != "checksum " + hex_of(XXH3_64bits(text.data(), sum)) + "\n")
    return std::nullopt;
  std::istringstream lines(text.substr(0, sum));
  std::string line;
  if (!std::getline(lines, line) || line != first_line || !std::getline(lines, line) ||
      line != "file " + file)
    return std::nullopt;
  std::vector<pending_clear> clears;
  while (std::getline(lines, line)) {
    auto clear = decode_line(line);
    if (!clear)
      return std::nullopt;
    clears.push_back(*clear);
  }
  return clears;
}

/// Ignores errors, which show when the folder is opened.
void make_durably(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::exists(folder, failed) || !folder.has_relative_path())
    return;
  make_durably(folder.parent_path());
  std::filesystem::create_directory(folder, failed);
  if (unique_fd parent(::open(folder.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); parent)
    ::fsync(parent.get());
}

/// Makes and locks the folder. A caller that changes something in it syncs it.
result<unique_fd> lock_folder(const std::string& folder) {
  if (folder.empty())
    return fail(errc::unsupported, "this daemon has no state directory");
  make_durably(folder);
  unique_fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    return fail_system(folder, "opening the state directory", errno);
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return fail_system(folder, "locking the state directory", errno);
  return fd;
}

/// Returns no clears if there is no record. Errors: the system's.
result<std::vector<pending_clear>> read_record(const std::string& record, const std::string& file) {
  unique_fd fd(::open(record.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR))
    return {};
  if (!fd)
    return fail_system(record, ("reading the clears that wait for " + file).c_str(), errno);
  std::string text(record_bytes_max, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fail_system(record, ("reading the clears that wait for " + file).c_str(), errno);
    if (got == 0)
      break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return decode(text, file).value_or(std::vector<pending_clear>{{}});
}

result<void> write_all(const std::string& path, const std::string& text) {
  unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd)
    return fail_system(path, "opening", errno);
  for (size_t written = 0; written < text.size();) {
    ssize_t done = ::write(fd.get(), text.data() + written, text.size() - written);
    if (done < 0 && errno != EINTR)
      return fail_system(path, "writing", errno);
    written += done > 0 ? static_cast<size_t>(done) : 0;
  }
  if (::fsync(fd.get()) != 0)
    return fail_system(path, "syncing", errno);
  return {};
}

/// Replaces the record, or removes it when no clear waits.
result<void> replace(const std::string& record, const std::string& file, int folder,
                     const std::vector<pending_clear>& clears) {
  if (clears.empty()) {
    if (::unlink(record.c_str()) != 0 && errno != ENOENT)
      return fail_system(record, "removing", errno);
  } else {
    std::string next = record + ".new";
    if (auto written = write_all(next, encode(file, clears)); !written)
      return written;
    if (::rename(next.c_str(), record.c_str()) != 0)
      return fail_system(record, "replacing", errno);
  }
  if (::fsync(folder) != 0)
    return fail_system(record, "syncing its folder", errno);
  return {};
}

void add(std::vector<pending_clear>& clears, const pending_clear& more) {
  if (!more.space && more.volume == volume_id{})
    clears.clear(); // this clear says all that the others say
  if (std::find(clears.begin(), clears.end(), more) == clears.end())
    clears.push_back(more);
  if (clears.size() > pending_clears::clears_max)
    clears = {{}};
}

} // namespace

std::string pending_clears::record_of(const std::string& file) const {
  return folder_ + "/clears-" + hex_of(XXH3_64bits(file.data(), file.size()));
}

result<void> pending_clears::remember(std::span<const std::string> files, const pending_clear& clear,
                                      const std::function<bool()>& still_needed) const {
  if (files.empty())
    return {};
  auto folder = lock_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  if (!still_needed())
    return fail(errc::busy, "the volume is being opened: try again");
  for (const std::string& file : files) {
    auto clears = read_record(record_of(file), file);
    if (!clears)
      return tl::unexpected(clears.error());
    add(*clears, clear);
    if (auto done = replace(record_of(file), file, folder->get(), *clears); !done)
      return done;
  }
  return {};
}

result<std::vector<pending_clear>> pending_clears::of(std::span<const std::string> files) const {
  std::vector<pending_clear> all;
  if (folder_.empty() || (::access(folder_.c_str(), F_OK) != 0 && errno == ENOENT))
    return all;
  auto folder = lock_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  for (const std::string& file : files) {
    auto clears = read_record(record_of(file), file);
    if (!clears)
      return clears;
    all.insert(all.end(), clears->begin(), clears->end());
  }
  return all;
}

result<void> pending_clears::applied(const std::string& file, outcome ended, const volume_id& volume,
                                     uint64_t epoch) const {
  std::string record = record_of(file);
  if (std::error_code failed; folder_.empty() || !std::filesystem::exists(record, failed))
    return {};
  auto folder = lock_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  auto before = read_record(record, file);
  if (!before)
    return tl::unexpected(before.error());
  std::vector<pending_clear> left;
  for (pending_clear clear : *before) {
    bool of_any = clear.volume == volume_id{};
    if (ended != outcome::left_out && clear.volume == volume)
      continue;
    if (ended == outcome::kept && clear.concerns(volume))
      continue;
    if (of_any && ended == outcome::made_new)
      clear.made_since = volume;
    if (of_any && ended == outcome::left_out) {
      clear.volume = volume;
      clear.epoch = epoch;
    }
    add(left, clear);
  }
  return left == *before ? result<void>() : replace(record, file, folder->get(), left);
}

bool still_needed(const pending_clear& clear, disk_phase now) {
  return clear.volume != volume_id{} || (now != disk_phase::starting && now != disk_phase::ready);
}

remember_clear_answer remember_clear(const std::string& state_directory, std::vector<std::string> files,
                                     const pending_clear& clear, const std::function<disk_phase()>& phase) {
  if (phase() == disk_phase::off)
    std::erase_if(files, [](const std::string& file) {
      std::error_code failed;
      return !std::filesystem::exists(file, failed) && !failed;
    });
  auto done =
      pending_clears(state_directory).remember(files, clear, [&] { return still_needed(clear, phase()); });
  if (done)
    return {};
  if (done.error().code == errc::busy)
    return {{errc::busy, files.front() + " is being opened and cannot be cleared yet; try again"}};
  return {{errc::internal, "host memory is cleared, but " + files.front() +
                               " could not be reached, and the clear could not be recorded for it (" +
                               done.error().text +
                               "): cleared objects may be served again once the file can be opened"}};
}

} // namespace terrace
