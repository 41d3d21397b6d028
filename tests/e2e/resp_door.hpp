// A daemon with a socket for Redis clients, and common functions of its tests.
#pragma once

#include "resp_client.hpp"
#include "workload.hpp"

#include <memory>
#include <string>

namespace terrace::e2e {

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline std::string value_of(size_t bytes, unsigned seed) {
  std::string value(bytes, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (char& c : value) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    c = static_cast<char>(state >> 56);
  }
  return value;
}

/// A daemon whose door is at `door()`.
struct RespDoor : ::testing::Test {
  temporary_folder folder{"/tmp"};
  std::unique_ptr<daemon_under_test> daemon;

  std::string door() const { return folder / "resp.sock"; }
  daemon_options options(uint64_t disk_bytes = 0, const std::string& more = {}) const {
    daemon_options with;
    with.disk_bytes = disk_bytes;
    with.more = resp_section(door(), more);
    return with;
  }
  void start(const daemon_options& with) { daemon = std::make_unique<daemon_under_test>(with); }
  void start(uint64_t disk_bytes = 0, const std::string& more = {}) {
    start(options(disk_bytes, more));
    if (disk_bytes != 0) {
      ASSERT_TRUE(daemon->await_log("joined"));
    }
  }
};

} // namespace terrace::e2e
