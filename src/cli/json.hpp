// JSON for --json: one object per command, keys in reading order.
#pragma once

#include "cli/console.hpp"
#include "cli/trace_statistics.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace terrace::cli {

using json = nlohmann::ordered_json;

/// One line; text that is not UTF-8 (such as a client's name) is repaired, not refused.
inline std::string json_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

inline void print_json(console& to, const json& value) { to.print("{}", json_line(value)); }

/// {"count", "mean", "p50", "p90", "p99", "max"}; the unit is part of the enclosing key.
inline json to_json(const percentiles& p) {
  return {{"count", p.count}, {"mean", p.mean}, {"p50", p.p50},
          {"p90", p.p90},     {"p99", p.p99},   {"max", p.max}};
}

} // namespace terrace::cli
