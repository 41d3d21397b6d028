// The log lines about one client.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log_limit.hpp"
#include "base/printable.hpp"
#include "connection/client_state.hpp"
#include "protocol/kinds.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace terrace {

/// Where the log lines about the clients of a trust group go. Safe on any thread.
struct client_log_lines {
  std::function<void(const std::string&)> info;
  detail_log detail;
  std::shared_ptr<shared_log_limit> ends;   ///< limit of lines on ended connections
  std::shared_ptr<shared_log_limit> leases; ///< limit of lines on leases held for long
};

/// Each line names the client. Text from clients is made printable.
class client_log {
 public:
  client_log(std::shared_ptr<const client_state> who, client_log_lines to)
      : who_(std::move(who)), to_(std::move(to)) {}

  void info(const std::string& text) const { to_.info(line(text)); }

  /// A client can cause these lines one after the other, so their number is limited.
  void end(const std::string& text, log_limit::clock::time_point now) const {
    if (auto admitted = to_.ends->admit(line(text), now))
      to_.info(*admitted);
  }

  /// One client can take many leases, so the number of these lines is limited too.
  void old_lease(uint64_t chunks, log_limit::clock::time_point now) const {
    if (auto admitted = to_.leases->admit(line("holds a lease on " + format_counted(chunks, "chunk") +
                                               " for longer than twice connection.request_deadline"),
                                          now))
      to_.info(*admitted);
  }

  /// `make` returns the text. It is called only if the line is written.
  template <class Text>
  void debug(Text&& make) const {
    detail(detail_log::level::debug, std::forward<Text>(make));
  }

  void answered(request_id id, protocol::kind kind, errc outcome, std::chrono::nanoseconds latency,
                const std::string& trace) const {
    detail(detail_log::level::trace, [&] {
      auto micros = std::chrono::duration_cast<std::chrono::microseconds>(latency).count();
      return "request " + std::to_string(id) + ": " + std::string(protocol::to_string(kind)) + " answered " +
             std::string(to_string(outcome)) + " after " + std::to_string(micros) + " us" +
             (trace.empty() ? "" : " (trace " + trace + ")");
    });
  }

 private:
  std::string line(const std::string& text) const {
    std::string name = who_->name();
    return printable("connection " + std::to_string(static_cast<uint64_t>(who_->id)) + " (" + name +
                     (name.empty() ? "" : ", ") + "pid " + std::to_string(who_->pid) + ") " + text);
  }
  template <class Text>
  void detail(detail_log::level level, Text&& make) const {
    if (to_.detail.wanted(level))
      to_.detail.write(level, line(make()));
  }

  std::shared_ptr<const client_state> who_;
  client_log_lines to_;
};

} // namespace terrace
