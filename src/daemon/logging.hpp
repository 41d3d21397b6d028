// The daemon's log: lines on standard error, as text or JSON.
#pragma once

#include "base/error.hpp"
#include "base/log_limit.hpp"
#include "daemon/settings.hpp"

#include <string>
#include <vector>

namespace terrace {

/// Call before the actors start. Any thread may log afterwards.
void start_logging(const daemon_options& options);

/// Sets the level at run time, after a reload or for an operator. Returns the previous level. Error:
/// `bad_request` for an unknown level.
/// The last warnings and errors, the oldest first, as they stand in the log. Safe on any thread.
std::vector<std::string> last_warnings();

result<std::string> set_log_level(const std::string& level);

/// True for the levels debug and trace.
bool logs_detail(detail_log::level level);
void log_detail(detail_log::level level, const std::string& line);

void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);

/// Logs why the daemon ends: one entry per line of the text. Before `start_logging` the output is plain text
/// after "terraced: ".
void log_fatal(const std::string& lines);

/// From now on an uncaught exception is logged as a fatal line. The process then ends: with exit code 1 if the system
/// had no memory or thread left, otherwise by abort, because it is a bug.
void log_uncaught_exceptions();

} // namespace terrace
