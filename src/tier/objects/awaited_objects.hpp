// Requests that wait until others have written objects, or have abandoned them.
#pragma once

#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "tier/messages.hpp"

#include <functional>
#include <memory>
#include <unordered_map>
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

} // namespace terrace
