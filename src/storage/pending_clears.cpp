#include "storage/pending_clears.hpp"

#include "base/digest.hpp"
#include "storage/state_records.hpp"
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

std::string encode(const std::string& file, const std::vector<pending_clear>& clears) {
  std::string text = std::string(first_line) + "\nfile " + file + "\n";
  for (const pending_clear& clear : clears)
    text += (clear.space ? "space " + to_hex(digest{*clear.space}) : std::string("all -")) + " " +
            to_hex(clear.volume) + " " + std::to_string(clear.epoch) + " " + to_hex(clear.made_since) + "\n";
  return with_checksum(std::move(text));
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
  const auto whole = without_checksum(text);
  if (!whole)
    return std::nullopt;
  std::istringstream lines(*whole);
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

/// Returns no clears if there is no record. Errors: the system's.
result<std::vector<pending_clear>> read_clears(const std::string& record, const std::string& file) {
  auto text = read_record(record, "reading the clears that wait for " + file);
  if (!text)
    return tl::unexpected(text.error());
  if (!*text)
    return {};
  return decode(**text, file).value_or(std::vector<pending_clear>{{}});
}

/// Replaces the record, or removes it when no clear waits.
result<void> replace(const std::string& record, const std::string& file, const unique_fd& folder,
                     const std::vector<pending_clear>& clears) {
  return replace_record(record, clears.empty() ? std::string() : encode(file, clears), folder);
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
  return record_path(folder_, "clears", file);
}

result<void> pending_clears::remember(std::span<const std::string> files, const pending_clear& clear,
                                      const std::function<bool()>& still_needed) const {
  if (files.empty())
    return {};
  auto folder = lock_state_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  if (!still_needed())
    return fail(errc::busy, "the volume is being opened: try again");
  for (const std::string& file : files) {
    auto clears = read_clears(record_of(file), file);
    if (!clears)
      return tl::unexpected(clears.error());
    add(*clears, clear);
    if (auto done = replace(record_of(file), file, *folder, *clears); !done)
      return done;
  }
  return {};
}

result<std::vector<pending_clear>> pending_clears::of(std::span<const std::string> files) const {
  std::vector<pending_clear> all;
  if (folder_.empty() || (::access(folder_.c_str(), F_OK) != 0 && errno == ENOENT))
    return all;
  auto folder = lock_state_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  for (const std::string& file : files) {
    auto clears = read_clears(record_of(file), file);
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
  auto folder = lock_state_folder(folder_);
  if (!folder)
    return tl::unexpected(folder.error());
  auto before = read_clears(record, file);
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
  return left == *before ? result<void>() : replace(record, file, *folder, left);
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
