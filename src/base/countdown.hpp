// Calls a function when the last of several things in progress has ended.
//
//   auto all = std::make_shared<countdown>([reply] { reply.deliver({}); });
//   for (const disk_actor& disk : disks) {
//     all->begin();
//     request(disk, ...).then([all](const retire_answer&) { all->end(); }, ...);
//   }
//   all->end(); // immediately done if there are no disks
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <utility>

namespace terrace {

/// Used by one thread at a time. The caller that begins things counts as one of them until it calls `end`
/// itself, so the function cannot run before all have begun.
class countdown {
 public:
  explicit countdown(std::function<void()> done) : done_(std::move(done)) {}

  void begin() { ++left_; }
  void end() {
    assert(left_ != 0);
    if (--left_ == 0)
      done_();
  }

 private:
  size_t left_ = 1;
  std::function<void()> done_;
};

} // namespace terrace
