// Standard error as a sink of the log that never waits for whoever reads it.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace {

/// A worker that logs would otherwise stand still with a log collector that does. Lines that the reader of a pipe, a
/// socket or a terminal has no room for are dropped; the next one that it takes says how many these were.
class stderr_sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  stderr_sink() {
    struct stat about = {};
    is_socket_ = ::fstat(STDERR_FILENO, &about) == 0 && S_ISSOCK(about.st_mode);
    has_colours_ = ::isatty(STDERR_FILENO) == 1;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text(line.data(), line.size());
    if (has_colours_ && message.color_range_end > message.color_range_start) {
      text.insert(message.color_range_end, "\033[0m");
      text.insert(message.color_range_start, colour_of(message.level));
    }
    if (dropped_ != 0) {
      spdlog::details::log_msg told(message.time, {}, message.logger_name, spdlog::level::warn, "");
      std::string what =
          std::to_string(dropped_) + " lines of the log are missing here: nobody read them in time";
      told.payload = what;
      spdlog::memory_buf_t missing;
      formatter_->format(told, missing);
      if (!write({missing.data(), missing.size()})) {
        ++dropped_;
        return;
      }
      dropped_ = 0;
    }
    if (!write(text))
      ++dropped_;
  }
  void flush_() override {}

  static const char* colour_of(spdlog::level::level_enum level) {
    return level >= spdlog::level::err ? "\033[31m" : level == spdlog::level::warn ? "\033[33m" : "\033[32m";
  }

  /// Returns false if nothing of the text could be written without waiting. A pipe that is ready takes PIPE_BUF bytes
  /// at once (pipe(7)). An error, such as a full disk, is not the reader's fault, and nobody could be told.
  bool write(std::string_view text) {
    bool begun = false;
    while (!text.empty()) {
      std::string_view part = text.substr(0, PIPE_BUF);
      ssize_t written = 0;
      if (is_socket_) {
        written = ::send(STDERR_FILENO, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
          return begun;
      } else {
        pollfd ready{STDERR_FILENO, POLLOUT, 0};
        if (::poll(&ready, 1, 0) == 0)
          return begun;
        written = ::write(STDERR_FILENO, part.data(), part.size());
      }
      if (written <= 0)
        return true;
      begun = true;
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  bool is_socket_ = false;
  bool has_colours_ = false;
  uint64_t dropped_ = 0;
};

} // namespace terrace
