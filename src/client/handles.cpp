#include "client/handles.hpp"

#include "client/core.hpp"

namespace terrace::client {

void lease::release() {
  if (session_ && !id_.empty())
    session_->post_release(id_);
  id_ = {};
  session_.reset();
}

void reservation::abort() {
  if (session_ && id_ != 0)
    session_->post_abort(id_);
  id_ = 0;
  objects_.clear();
  session_.reset();
}

void registered_region::unregister() {
  if (core_)
    core_->unregister_region(slot_);
  core_.reset();
}

namespace detail {

any_ticket::~any_ticket() {
  if (session_ && id_ != 0)
    session_->forget(id_);
}

bool any_ticket::ready() const { return session_ && id_ != 0 && session_->ready(id_); }

} // namespace detail

} // namespace terrace::client
