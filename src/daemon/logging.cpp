#include "daemon/logging.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace terrace {

namespace {

bool json = false;

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

} // namespace

void start_logging(const daemon_options& options) {
  json = options.log_json;
  spdlog::set_default_logger(spdlog::stderr_color_mt("terraced"));
  if (json)
    spdlog::set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%v"})");
  else
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  set_log_level(options.log_level);
}

void set_log_level(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

namespace {

spdlog::level::level_enum level_of(actors::detail_log::level level) {
  return level == actors::detail_log::level::trace ? spdlog::level::trace : spdlog::level::debug;
}

} // namespace

bool logs_detail(actors::detail_log::level level) { return spdlog::should_log(level_of(level)); }
void log_detail(actors::detail_log::level level, const std::string& line) { log(level_of(level), line); }

void log_info(const std::string& line) { log(spdlog::level::info, line); }
void log_warning(const std::string& line) { log(spdlog::level::warn, line); }
void log_error(const std::string& line) { log(spdlog::level::err, line); }

} // namespace terrace
