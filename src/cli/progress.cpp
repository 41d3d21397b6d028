#include "cli/progress.hpp"

#include "cli/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace terrace::cli {

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
  fmt::print(to_.err, "\r\x1b[K{} {} {}/{} {}", title_, progress_bar(ratio, bar_width), format_count(done_),
             format_count(total_), note_);
  std::fflush(to_.err);
}

void progress::print_tenth() {
  uint64_t tenths = total_ == 0 ? 10 : done_ * 10 / total_;
  if (tenths <= tenths_)
    return;
  tenths_ = tenths;
  fmt::print(to_.err, "{} {} %: {}/{} {}\n", title_, tenths * 10, format_count(done_), format_count(total_),
             note_);
}

void progress::finish() {
  std::lock_guard lock(mutex_);
  if (!finished_ && to_.err_is_terminal)
    fmt::print(to_.err, "\r\x1b[K");
  finished_ = true;
}

} // namespace terrace::cli
