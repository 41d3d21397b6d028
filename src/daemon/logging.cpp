#include "daemon/logging.hpp"
#include "base/printable.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <poll.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace terrace {

namespace {

/// Standard error, which never makes the daemon wait for whoever reads it: a worker that logs would otherwise stand still with a log collector that does. Lines that the reader of a pipe, a
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
      std::string what = format_counted(dropped_, "line") + " of the log " + (dropped_ == 1 ? "is" : "are") +
                         " missing here: nobody read in time";
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

bool json = false;
bool started = false;

using warning_sink = spdlog::sinks::ringbuffer_sink_mt;
constexpr size_t kept_warnings_max = 50;
std::shared_ptr<warning_sink> kept_warnings; ///< set when logging starts

/// Escapes the contents of a JSON string.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out;
}

void log(spdlog::level::level_enum level, const std::string& line) {
  spdlog::log(level, "{}", json ? escaped(line) : line);
}

[[noreturn]] void end_of_uncaught_exception() {
  std::string why = "an internal error without an exception";
  bool exhausted = false;
  if (auto thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      why = "out of memory";
      exhausted = true;
    } catch (const std::system_error& problem) {
      why = problem.what();
      exhausted = problem.code() == std::errc::resource_unavailable_try_again;
      if (exhausted)
        why += " (a thread could not be started: raise RLIMIT_NPROC, or the cgroup's pids.max)";
    } catch (const std::exception& problem) {
      why = problem.what();
    } catch (...) {
      why = "an exception of an unknown type";
    }
  }
  log_fatal("the daemon ends: " + why);
  if (exhausted)
    std::_Exit(1);
  std::abort();
}

} // namespace

void log_uncaught_exceptions() { std::set_terminate(end_of_uncaught_exception); }

void start_logging(const daemon_options& options) {
  json = options.log_json;
  auto logger = std::make_shared<spdlog::logger>("terraced", std::make_shared<stderr_sink>());
  kept_warnings = std::make_shared<warning_sink>(kept_warnings_max);
  kept_warnings->set_level(spdlog::level::warn);
  logger->sinks().push_back(kept_warnings);
  spdlog::set_default_logger(logger);
  if (json)
    spdlog::set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%v"})");
  else
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e%z %^%l%$ %v");
  (void) set_log_level(options.log_level); // the level was validated
  started = true;
}

std::vector<std::string> last_warnings() {
  return kept_warnings ? kept_warnings->last_formatted() : std::vector<std::string>();
}

result<std::string> set_log_level(const std::string& level) {
  const auto& known = daemon_options::log_levels;
  if (std::find(known.begin(), known.end(), level) == known.end()) {
    std::string all;
    for (std::string_view one : known)
      all.append(all.empty() ? "" : ", ").append(one);
    return fail(errc::bad_request, "expected one of the log levels " + all + ", got \"" + level + "\"");
  }
  auto before = spdlog::level::to_string_view(spdlog::get_level());
  spdlog::set_level(spdlog::level::from_str(level));
  return std::string(before.data(), before.size());
}

namespace {

spdlog::level::level_enum level_of(detail_log::level level) {
  return level == detail_log::level::trace ? spdlog::level::trace : spdlog::level::debug;
}

} // namespace

bool logs_detail(detail_log::level level) { return spdlog::should_log(level_of(level)); }
void log_detail(detail_log::level level, const std::string& line) { log(level_of(level), line); }

void log_info(const std::string& line) { log(spdlog::level::info, line); }
void log_warning(const std::string& line) { log(spdlog::level::warn, line); }
void log_error(const std::string& line) { log(spdlog::level::err, line); }

void log_fatal(const std::string& lines) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) {
    if (started)
      log(spdlog::level::critical, line);
    else
      std::cerr << "terraced: " << line << "\n";
  }
}

} // namespace terrace
