// terrace top

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/status_report.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <poll.h>
#include <termios.h>
#include <unistd.h>

namespace terrace::cli {

namespace {

using clock = std::chrono::steady_clock;

/// A sequence that xterm and all its successors understand.
constexpr const char* from_the_top = "\x1b[H";
constexpr const char* clear_to_line_end = "\x1b[K";
constexpr const char* clear_below = "\x1b[J";
constexpr const char* clear_all = "\x1b[2J";

/// Overwrites the previous output in place, so that it does not flicker.
void redraw(console& to, const std::string& text) {
  std::string lines = from_the_top;
  for (char c : text) {
    if (c == '\n')
      lines += clear_to_line_end;
    lines += c;
  }
  to.print("{}{}", lines, clear_below);
  to.flush();
}

/// Reads single keys from a terminal while it lives.
class key_input {
 public:
  explicit key_input(const console& to) {
    if (!to.in_is_terminal || !to.out_is_terminal)
      return;
    fd_ = fileno(to.in);
    tcgetattr(fd_, &before_);
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO); // Ctrl-C remains a signal
    tcsetattr(fd_, TCSANOW, &now);
  }
  ~key_input() {
    if (fd_ >= 0)
      tcsetattr(fd_, TCSANOW, &before_);
  }
  key_input(const key_input&) = delete;
  key_input& operator=(const key_input&) = delete;

  int descriptor() const { return fd_; } ///< -1: there is no terminal

  /// Whether q, or the end of the input, is among the keys that were pressed.
  bool ends() {
    for (pollfd wake{fd_, POLLIN, 0}; fd_ >= 0 && poll(&wake, 1, 0) == 1;) {
      char key = 0;
      if (read(fd_, &key, 1) <= 0 || key == 'q' || key == 'Q')
        return true;
    }
    return false;
  }

 private:
  int fd_ = -1;
  termios before_{};
};

class top_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--interval", interval_s_, "Seconds between two looks")
        ->check(CLI::Range(0.1, 3'600.0))
        ->capture_default_str();
    app.add_option("--count", count_, "Show so many times, then end; 0: until q or Ctrl-C, with --json once")
        ->capture_default_str();
    app.add_option("--clients", clients_, "Show at most so many of the slowest clients")
        ->capture_default_str();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace top", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    interruption stop;
    auto before = daemon->admin().status(daemon_.until());
    auto looked = clock::now();
    if (!before)
      return request_failed(*daemon, "asking for the status", before.error());
    if (daemon_.json && count_ == 0)
      count_ = 1;
    key_input keys(to);
    if (to.out_is_terminal && !daemon_.json)
      to.print("{}terraced is watched for {}; q ends\n", clear_all, format_duration(interval_s_ * 1e9));
    to.flush();
    for (uint64_t shown = 0; count_ == 0 || shown < count_; ++shown) {
      auto due = looked + std::chrono::nanoseconds(static_cast<int64_t>(interval_s_ * 1e9));
      while (!stop.requested() && clock::now() < due) {
        stop.sleep_until(due, keys.descriptor());
        if (keys.ends())
          stop.request();
      }
      if (stop.requested())
        break;
      auto now = daemon->admin().status(daemon_.until());
      auto at = clock::now();
      if (!now)
        return request_failed(*daemon, "asking for the status", now.error());
      if (daemon_.json)
        print_json(to, top_json(*before, *now, at - looked, clients_));
      else if (std::string text = format_top(*before, *now, at - looked, clients_); to.out_is_terminal)
        redraw(to, text);
      else
        to.print("{}{}", shown == 0 ? "" : "\n", text);
      to.flush();
      before = std::move(now);
      looked = at;
    }
    return exit_code::ok;
  }

 private:
  double interval_s_ = 2;
  uint64_t count_ = 0;
  size_t clients_ = 10;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_top_command() { return std::make_unique<top_command>(); }

} // namespace terrace::cli
