// Requests that wait until others have written objects, or have abandoned them.
#pragma once

#include "base/object_key.hpp"
#include "tier/request_context.hpp"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace terrace {

class awaited_objects {
 public:
  /// `done` is called once: with `ok` when all of these have settled (immediately if there are none), or with
  /// what ended the context.
  void await(const std::vector<entry_key>& written, context_ptr context, std::function<void(errc)> done);

  /// The object is no longer being written.
  void settle(entry_key name);

  /// Calls `done` for requests whose context has ended.
  void sweep();

 private:
  struct waiter {
    size_t left = 0;
    context_ptr context;
    std::function<void(errc)> done;
  };
  std::unordered_map<entry_key, std::vector<std::shared_ptr<waiter>>> waiters_;
};

} // namespace terrace
