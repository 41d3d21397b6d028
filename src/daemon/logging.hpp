// The daemon's log: lines on standard error, as text or JSON.
#pragma once

#include "actors/detail_log.hpp"
#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <string>

namespace terrace {

/// Call before the actors start. Any thread may log afterwards.
void start_logging(const daemon_options& options);

/// At run time, after a reload.
void set_log_level(const std::string& level);

/// The levels debug and trace.
bool logs_detail(actors::detail_log::level level);
void log_detail(actors::detail_log::level level, const std::string& line);

void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);

} // namespace terrace
