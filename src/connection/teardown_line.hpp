// Work of requests that waits until clients' memory is unmapped.
#pragma once

#include "base/request_context.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace terrace {

/// The teardown's thread owns the work. If a request ends meanwhile, its work goes on early in order to
/// refuse it; a prefetch learns of its end in the same way. Used by the connection's thread only.
class teardown_line {
 public:
  using work = std::shared_ptr<std::function<void()>>;

  void add(const context_ptr& of, const work& what) {
    std::erase_if(waiting_, [](const entry& each) { return each.what.expired(); });
    waiting_.push_back({of, what});
  }

  /// Returns the work of requests that have ended.
  std::vector<work> take_ended() {
    std::vector<work> ended;
    std::erase_if(waiting_, [&ended](const entry& each) {
      if (auto of = each.of.lock(); of && of->live())
        return false;
      if (auto what = each.what.lock())
        ended.push_back(std::move(what));
      return true;
    });
    return ended;
  }

  size_t size() const { return waiting_.size(); }

 private:
  struct entry {
    /// The holder of the work keeps the request alive and counts as in progress.
    std::weak_ptr<request_context> of;
    std::weak_ptr<std::function<void()>> what;
  };
  std::vector<entry> waiting_;
};

} // namespace terrace
