// A request to the disks of a tier that a coroutine awaits.
#pragma once

#include "actors/ask.hpp"
#include "actors/disk/disk_fan.hpp"

namespace terrace::actors {

/// `auto read = co_await await_disks(self, disk, request);` The request must outlive the await.
template <class Self>
class [[nodiscard]] await_disks {
 public:
  await_disks(Self* self, const disk_access& disk, const disk_request& what)
      : self_(self), disk_(disk), what_(what) {}

  bool await_ready() const noexcept { return what_.operations.empty(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    auto link = frame.promise().link;
    ask_disks(
        self_, disk_, what_,
        [this, link, frame](disks_answer& answer) {
          if (!link->alive())
            return;
          answer_.emplace(std::move(answer));
          link->resume(frame);
        },
        [link, frame](const caf::error&) {
          if (link->alive())
            link->resume(frame);
        });
  }
  result<disks_answer> await_resume() {
    if (answer_)
      return std::move(*answer_);
    if (what_.operations.empty())
      return disks_answer{};
    return tl::unexpected(detail::has_ended("disk"));
  }

 private:
  Self* self_;
  const disk_access& disk_;
  const disk_request& what_;
  std::optional<disks_answer> answer_;
};

} // namespace terrace::actors
