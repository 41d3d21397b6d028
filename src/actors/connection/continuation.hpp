// Where a request goes on that waits for something, and what identifies it meanwhile.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/request_context.hpp"
#include "protocol/kinds.hpp"
#include "runtime/task.hpp"

#include <coroutine>
#include <memory>

namespace terrace::actors {

class client_request;

/// A request in flight, for those who answer it.
struct request_entry {
  request_id id{};
  protocol::kind kind{};
  context_ptr context;
};

/// A suspended frame of a request. Copies may outlive the request.
class continuation {
 public:
  template <class Promise>
  continuation(client_request& request, std::coroutine_handle<Promise> frame)
      : request_(&request), link_(frame.promise().link), frame_(frame) {}

  /// False: the request's coroutine has been destroyed.
  bool alive() const { return link_->alive(); }
  /// Resumes the frame, if it is still there.
  void go_on() const {
    auto link = link_; // `this` may be in the frame
    if (link->alive())
      link->resume(frame_);
  }
  /// Refuses the request and destroys its coroutine, if it is still there.
  void fail(const error& why) const;

 private:
  client_request* request_;
  std::shared_ptr<task_link> link_;
  std::coroutine_handle<> frame_;
};

} // namespace terrace::actors
