// A simulated disk with what its tests do again and again.
#pragma once

#include "simulated_disk.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <set>
#include <span>
#include <string>

namespace terrace::simulation {

constexpr uint64_t disk_bytes = 1ULL << 20;
constexpr survival all_survivals[] = {survival::nothing, survival::everything, survival::oldest,
                                      survival::changes, survival::sectors};

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// One letter a sector.
inline std::string sectors_of(const std::string& letters) {
  std::string text;
  for (char letter : letters)
    text.append(sector_bytes, letter);
  return text;
}

struct disk_machine {
  explicit disk_machine(uint64_t seed = 1) : disk(seed, disk_bytes) {}

  int create(const std::string& path, int flags = 0) { return disk.open(path, O_RDWR | O_CREAT | flags); }
  /// Creates a file with these contents, all of it durable.
  int create_durable(const std::string& path, const std::string& contents) {
    int file = create(path);
    EXPECT_EQ(write(file, 0, contents), static_cast<int64_t>(contents.size()));
    EXPECT_EQ(disk.fsync(file), 0);
    sync_root();
    return file;
  }
  void sync_root() { EXPECT_EQ(disk.fsync(disk.open("/", O_RDONLY | O_DIRECTORY)), 0); }
  int64_t write(int file, uint64_t offset, const std::string& text) {
    return disk.write(file, offset, bytes_of(text));
  }
  std::string read(int file) {
    std::string text(disk_bytes, '\0');
    int64_t count = disk.read(file, 0, std::as_writable_bytes(std::span(text)));
    if (count < 0)
      return "error " + std::to_string(-count);
    text.resize(static_cast<size_t>(count));
    return text;
  }
  std::string read(const std::string& path) {
    int file = disk.open(path, O_RDONLY);
    return file < 0 ? "error " + std::to_string(-file) : read(file);
  }
  /// The first byte of each sector; '.' for a zero.
  std::string letters(const std::string& path) {
    std::string text = read(path), out;
    for (size_t at = 0; at < text.size(); at += sector_bytes) {
      EXPECT_EQ(text.substr(at, sector_bytes),
                std::string(std::min(sector_bytes, text.size() - at), text[at]))
          << "a sector is torn";
      out += text[at] == '\0' ? '.' : text[at];
    }
    return out;
  }

  simulated_disk disk;
};

/// What many seeds give.
inline std::set<std::string> outcomes(const std::function<std::string(disk_machine&)>& run) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    disk_machine of(seed);
    seen.insert(run(of));
  }
  return seen;
}

using strings = std::set<std::string>;

} // namespace terrace::simulation
