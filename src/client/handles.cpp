#include "client/handles.hpp"

#include "client/core.hpp"

namespace terrace::client {

void lease::release() {
  if (channel_ && !id_.empty())
    channel_->post_release(id_);
  id_ = {};
  channel_.reset();
}

void reservation::abort() {
  if (channel_ && id_ != 0)
    channel_->post_abort(id_);
  id_ = 0;
  objects_.clear();
  channel_.reset();
}

void registered_region::unregister() {
  if (core_)
    core_->unregister_region(slot_);
  core_.reset();
}

std::shared_ptr<detail::channel> registered_region::channel() const { return core_ ? core_->now() : nullptr; }

namespace detail {

any_ticket::~any_ticket() {
  if (channel_ && id_ != 0)
    channel_->forget(id_);
}

bool any_ticket::ready() const { return channel_ && id_ != 0 && channel_->ready(id_); }

} // namespace detail

} // namespace terrace::client
