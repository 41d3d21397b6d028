#include "daemon/logging.hpp"

#include "daemon/stderr_sink.hpp"

#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <system_error>

namespace terrace {

namespace {

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
