// A poll loop in place of the ring of a worker, for tests of links to remote stores.
#pragma once

#include "actors/remote/store_link.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <utility>
#include <vector>

namespace terrace::test {

using std::chrono::steady_clock;

/// Does what the ring does for a link: polls sockets, and waits.
class poll_ring {
 public:
  runtime::operation_id submit(runtime::io_request request, uint64_t tag) {
    const runtime::operation_id id{++last_};
    const auto until = steady_clock::now() + request.after;
    operations_.push_back({std::move(request), tag, id, until});
    return id;
  }
  void cancel(runtime::operation_id id) {
    for (auto& each : operations_)
      each.cancelled |= each.id == id;
  }
  bool empty() const { return operations_.empty(); }
  /// A poll for bytes that arrive has not finished.
  bool awaits_bytes() const {
    return std::ranges::any_of(operations_, [](const operation& each) {
      return each.request.code == runtime::io_code::poll && (each.request.events & POLLIN) != 0 &&
             !each.cancelled;
    });
  }

  /// Waits until an operation is done, and returns it.
  std::pair<uint64_t, int32_t> next() {
    while (true) {
      std::vector<pollfd> polled;
      auto until = steady_clock::time_point::max();
      for (auto each = operations_.begin(); each != operations_.end(); ++each) {
        const bool is_poll = each->request.code == runtime::io_code::poll;
        if (each->cancelled)
          return take(each, -ECANCELED);
        if (is_poll)
          polled.push_back({each->request.fd, static_cast<short>(each->request.events), 0});
        else if (each->until <= steady_clock::now())
          return take(each, -ETIME);
        else
          until = std::min(until, each->until);
      }
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(wait, 0, 60'000)));
      for (const pollfd& ready : polled)
        if (ready.revents != 0)
          return take(std::ranges::find_if(operations_,
                                           [&](const operation& each) {
                                             return each.request.code == runtime::io_code::poll &&
                                                    each.request.fd == ready.fd;
                                           }),
                      ready.revents);
    }
  }

 private:
  struct operation {
    runtime::io_request request;
    uint64_t tag;
    runtime::operation_id id;
    steady_clock::time_point until;
    bool cancelled = false;
  };
  std::pair<uint64_t, int32_t> take(std::deque<operation>::iterator done, int32_t result) {
    const uint64_t tag = done->tag;
    operations_.erase(done);
    return {tag, result};
  }

  std::deque<operation> operations_;
  uint64_t last_ = 0;
};

} // namespace terrace::test
