#include "actors/connection/counter_wakeup.hpp"

#include "actors/connection/connection.hpp"
#include "actors/connection/frame_channel.hpp"
#include "actors/gpu/daemon/device_actor.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <utility>

namespace terrace::actors {

result<unique_fd> counter_wakeup::descriptor() {
  auto state = shared_ ? shared_ : std::make_shared<shared>();
  if (!state->event)
    state->event = unique_fd(::eventfd(0, EFD_CLOEXEC));
  unique_fd given(state->event ? ::fcntl(state->event.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!given)
    return fail(errc::busy, "the daemon has no descriptors left");
  if (!shared_) {
    shared_ = std::move(state);
    read();
  }
  return given;
}

bool counter_wakeup::heard(int32_t result) {
  listening_ = {};
  if (!shared_)
    return false;
  bool polled = std::exchange(polls_, false);
  if (result > 0 || result == -EINTR)
    read();
  else if (result != -ECANCELED) // the client has made it non-blocking, or there was no memory
    poll();
  return result > 0 && !polled;
}

void counter_wakeup::remove() {
  if (listening_ != runtime::operation_id{})
    port_.cancel(listening_);
  shared_ = nullptr;
}

void counter_wakeup::read() {
  assert(listening_ == runtime::operation_id{}); // one at a time: it has one buffer
  runtime::io_request operation;
  operation.code = runtime::io_code::read;
  operation.fd = shared_->event.get();
  operation.data = &shared_->rings;
  operation.length = sizeof shared_->rings;
  operation.keep_alive = shared_;
  listening_ = port_.submit(std::move(operation), owner_, io_tag::bell);
}

void counter_wakeup::poll() {
  assert(listening_ == runtime::operation_id{});
  polls_ = true;
  runtime::io_request operation;
  operation.code = runtime::io_code::poll;
  operation.fd = shared_->event.get();
  operation.events = POLLIN;
  operation.keep_alive = shared_;
  listening_ = port_.submit(std::move(operation), owner_, io_tag::bell);
}

// Requests that wait for a counter of the client, and the bell that says when to look.

result<unique_fd> connection::bell() { return bell_.descriptor(); }

void connection::wait_for_counter(const request_entry& entry, const client_counter& counter, uint32_t value,
                                  device_memory_ptr memory, const continuation& waiting) {
  if (auto gone = end_of(counter, memory); gone.code != errc::ok) {
    waiting.fail(gone); // it came while the request was on its way here
  } else if (!bell_.hangs()) {
    waiting.fail({errc::bad_request,
                  "the counter has not been reached: expected a bell (Bell), which tells the "
                  "daemon when it has been, or the request when it has been"});
  } else if (auto ended = why_ended(entry.context, "wait"); ended.code != errc::ok) {
    waiting.fail(ended);
  } else {
    assert(waits_.size() < requests_max());
    client_.environment().client_probe->awaits_counter();
    waits_.add({counter, value, std::move(memory), entry.context, [this, waiting](const error& why) {
                  client_.environment().client_probe->awaits_no_counter();
                  if (why.code != errc::ok)
                    waiting.fail(why);
                  else
                    resume([waiting] { waiting.go_on(); });
                }});
  }
}

/// The reason why such a wait would never end.
error connection::end_of(const client_counter& counter, const device_memory_ptr& memory) const {
  if (!client_.holdings().regions().has(*counter.region()))
    return {errc::gone, "the region of the counter that the request waits for was unregistered"};
  auto same = [&](const auto& each) { return each.lock() == memory; };
  if (std::any_of(lost_memory_.begin(), lost_memory_.end(), same))
    return {errc::gone,
            "the process that mapped the region has ended; unregister the region and register it again"};
  return {};
}

void connection::on_bell(int32_t result) {
  if (!bell_.heard(result))
    return;
  client_.environment().client_probe->rung();
  for (auto& each : waits_.take_reached())
    each.then({});
}

void connection::refuse_ended_waits() {
  for (auto& each : waits_.take_ended())
    each.then({each.context->ended.load(), "the request ended while it waited for a counter of its client"});
}

void connection::end_waits_in(const client_region& counters) {
  for (auto& each : waits_.take_counted_in(counters))
    each.then({errc::gone, "the region of the counter that the request waited for was unregistered"});
}

/// Without the memory there is nothing to wait for.
void connection::watch_device_memory(const device_memory_ptr& memory) {
  const auto& region = region_of(*memory);
  auto ended = [this, which = std::weak_ptr(memory)] {
    std::erase_if(lost_memory_, [](const auto& each) { return each.expired(); });
    auto gone = which.lock();
    if (!gone)
      return;
    lost_memory_.push_back(which);
    for (auto& each : waits_.take_for(*gone))
      each.then({errc::gone, "the process that mapped the region has ended while the request waited for a "
                             "counter; unregister the region and register it again"});
  };
  ask(
      region.device(), end_region_request{region.id()}, [ended](const end_region_answer&) { ended(); },
      ended);
}

} // namespace terrace::actors
