// Work of requests that waits until clients' memory is unmapped.
#pragma once

#include "base/request_context.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace terrace {

/// The teardown's thread owns the work. That of a request which ends meanwhile goes on early, to refuse it; a prefetch is
/// told in the same way. Used by one thread at a time, that of the connection.
class teardown_line {
 public:
  using work = std::shared_ptr<std::function<void()>>;

  void add(const context_ptr& of, const work& what) {
    std::erase_if(waiting_, [](const entry& each) { return each.what.expired(); });
    waiting_.push_back({of, what});
  }

  /// The work of requests that have ended.
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
    std::weak_ptr<request_context> of; ///< whoever keeps the work keeps it, and counts as in progress
    std::weak_ptr<std::function<void()>> what;
  };
  std::vector<entry> waiting_;
};

} // namespace terrace
