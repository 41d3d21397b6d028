// Requests that wait until others have written objects, or have abandoned them.
#pragma once

#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "tier/messages.hpp"

#include <functional>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

/// How waiting ended.
struct awaited_end {
  errc code = errc::ok;   ///< `ok`: all have settled; otherwise what ended the context
  bool abandoned = false; ///< a writer gave up one of them
};

inline await_answer to_answer(const awaited_end& end) {
  if (end.code == errc::ok)
    return {{}, end.abandoned};
  return {{end.code, "the request ended while it waited for another that writes the same objects"},
          end.abandoned};
}

class awaited_objects {
 public:
  using told = std::function<void(awaited_end)>;

  /// `done` is called once: when all of these have settled (immediately if there are none), or when the context ended.
  void await(const std::vector<entry_key>& written, context_ptr context, told done);

  /// The object is no longer being written: it is complete, or its writer gave it up.
  void settle(entry_key name, bool written);

  /// Calls `done` for requests whose context has ended.
  void sweep();

 private:
  struct waiter {
    size_t left = 0;
    context_ptr context;
    told done;
    bool abandoned = false;
  };
  std::unordered_map<entry_key, std::vector<std::shared_ptr<waiter>>> waiters_;
};

inline void awaited_objects::await(const std::vector<entry_key>& written, context_ptr context, told done) {
  if (written.empty()) {
    done({});
    return;
  }
  auto waiting = std::make_shared<waiter>(waiter{written.size(), std::move(context), std::move(done)});
  for (entry_key name : written)
    waiters_[name].push_back(waiting);
}

inline void awaited_objects::settle(entry_key name, bool written) {
  auto entry = waiters_.find(name);
  if (entry == waiters_.end())
    return;
  auto settled = std::move(entry->second);
  waiters_.erase(entry);
  for (const auto& waiting : settled) {
    waiting->abandoned = waiting->abandoned || !written;
    if (--waiting->left == 0 && waiting->done)
      std::exchange(waiting->done, nullptr)({errc::ok, waiting->abandoned});
  }
}

inline void awaited_objects::sweep() {
  for (auto entry = waiters_.begin(); entry != waiters_.end();) {
    std::erase_if(entry->second, [](const std::shared_ptr<waiter>& waiting) {
      if (!waiting->context || waiting->context->live())
        return false;
      if (waiting->done)
        std::exchange(waiting->done, nullptr)({waiting->context->ended.load(), waiting->abandoned});
      return true;
    });
    entry = entry->second.empty() ? waiters_.erase(entry) : std::next(entry);
  }
}

} // namespace terrace
