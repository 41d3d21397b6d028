#include "cli/console.hpp"

#include "cli/units.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::cli {

void console::write(std::string_view bytes) const {
  if (std::fwrite(bytes.data(), 1, bytes.size(), out) < bytes.size())
    throw output_lost{errno};
}

void console::flush() const {
  if (std::fflush(out) != 0)
    throw output_lost{errno};
}

void console::expect_reader() const {
  pollfd pipe{fileno(out), 0, 0};
  if (poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0)
    throw output_lost{EPIPE};
}

outcome<void> confirm_on_terminal(const console& to, const std::string& text, bool given) {
  return confirm(to, text, given || !to.in_is_terminal);
}

outcome<void> confirm(const console& to, const std::string& text, bool given) {
  if (given)
    return {};
  if (!to.in_is_terminal)
    return bad_usage(text + "; nothing was changed. Use --yes, or answer on a terminal");
  to.note("{}. Continue? Type yes: ", text);
  std::fflush(to.err);
  std::string answer;
  for (int c; (c = std::fgetc(to.in)) != EOF && c != '\n';)
    answer.push_back(static_cast<char>(c));
  if (answer != "yes")
    return failed("the answer was not yes; nothing was changed");
  return {};
}

namespace {
constexpr size_t bar_width = 30;
constexpr auto redraw_interval = std::chrono::milliseconds(100);
} // namespace

std::string progress_bar(double ratio, size_t width) {
  auto filled = static_cast<size_t>(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(width));
  std::string bar(filled, '=');
  if (filled < width)
    bar += '>';
  bar.resize(width, ' ');
  return "[" + bar + "]";
}

progress::progress(console& to, std::string title, uint64_t total)
    : to_(to), title_(std::move(title)), total_(total) {}

void progress::advance(uint64_t by, const std::string& note) {
  std::lock_guard lock(mutex_);
  done_ += by;
  if (!note.empty())
    note_ = note;
  if (!to_.err_is_terminal) {
    print_tenth();
  } else if (auto now = std::chrono::steady_clock::now(); now - drawn_ >= redraw_interval) {
    drawn_ = now;
    draw();
  }
}

void progress::draw() {
  double ratio = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
  to_.note("\r\x1b[K{} {} {}/{} {}", title_, progress_bar(ratio, bar_width), format_count(done_),
           format_count(total_), note_);
  std::fflush(to_.err);
}

void progress::print_tenth() {
  uint64_t tenths = total_ == 0 ? 10 : done_ * 10 / total_;
  if (tenths <= tenths_)
    return;
  tenths_ = tenths;
  to_.note("{} {} %: {}/{} {}\n", title_, tenths * 10, format_count(done_), format_count(total_), note_);
}

void progress::finish() {
  std::lock_guard lock(mutex_);
  if (!finished_ && to_.err_is_terminal)
    to_.note("\r\x1b[K");
  finished_ = true;
}

namespace {

std::atomic<interruption*> current{nullptr};

void on_interrupt(int) {
  if (interruption* it = current)
    it->request();
}

} // namespace

interruption::interruption() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  current = this;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART; // a request in progress is finished
  sigaction(SIGINT, &action, nullptr);
}

interruption::~interruption() {
  std::signal(SIGINT, SIG_DFL);
  current = nullptr;
}

void interruption::request() {
  requested_ = true;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(event_.get(), &one, sizeof one);
}

void interruption::sleep_until(std::chrono::steady_clock::time_point due, int input) const {
  while (!requested_) {
    auto left = std::chrono::nanoseconds(due - std::chrono::steady_clock::now()).count();
    if (left <= 0)
      return;
    timespec time{left / 1'000'000'000, left % 1'000'000'000};
    pollfd wake[] = {{event_.get(), POLLIN, 0}, {input, POLLIN, 0}}; // the kernel skips a negative descriptor
    if (ppoll(wake, 2, &time, nullptr) > 0 && wake[1].revents != 0)
      return;
  }
}

} // namespace terrace::cli
