#include "gpu/copy_stream.hpp"

#include <algorithm>

namespace terrace::gpu {

result<std::unique_ptr<copy_stream>> copy_stream::open(std::shared_ptr<device> device, direction way,
                                                       copy_stream_options options) {
  auto completions = completion_queue::make();
  if (!completions)
    return tl::unexpected(completions.error());
  auto engine = device->make_engine(*completions);
  if (!engine)
    return tl::unexpected(engine.error());
  return std::unique_ptr<copy_stream>(
      new copy_stream(std::move(device), way, options, std::move(*completions), std::move(*engine)));
}

copy_stream::copy_stream(std::shared_ptr<device> device, direction way, copy_stream_options options,
                         std::shared_ptr<completion_queue> completions, std::unique_ptr<copy_engine> engine)
    : device_(std::move(device)), way_(way), options_(options), completions_(std::move(completions)),
      engine_(std::move(engine)) {}

copy_stream::~copy_stream() {
  for (auto& one : queue_)
    cancel(one.id); // ends the waits, so that the engine can stop
  engine_ = nullptr;
}

result<void> copy_stream::submit(copy_request request) {
  if (lost_)
    return tl::unexpected(*lost_);
  if (queue_.size() >= options_.requests_max)
    return fail(errc::busy, std::to_string(queue_.size()) + " requests wait on the stream");
  if (!request.region || !request.object)
    return fail(errc::bad_request, "a copy without memory");
  if (!(way_ == direction::load ? request.region : request.object)->writable())
    return fail(errc::bad_request, "a copy into memory that is pinned for reading");
  auto slots = request.page ? request.page->page().slots() : 0;
  if (auto ok = gpu::check(request, request.region->bytes(), request.object->bytes(), slots); !ok)
    return ok;
  for (const auto& one : queue_)
    if (one.id == request.id)
      return fail(errc::bad_request, "request " + std::to_string(request.id) + " is in flight already");
  entry added;
  added.serial = next_serial_++;
  added.id = request.id;
  added.parts = request.parts.size();
  added.awaited = !request.await;
  added.request = std::move(request);
  queue_.push_back(std::move(added));
  issue_more();
  return {};
}

bool copy_stream::cancel(uint64_t id) {
  auto it = std::find_if(queue_.begin(), queue_.end(), [&](const entry& one) { return one.id == id; });
  if (it == queue_.end())
    return false;
  // Requests that have issued all parts, or have failed, will end soon.
  if (it->failure || it->issued == it->parts)
    return true;
  it->failure = error{errc::cancelled, "cancelled after " + std::to_string(it->issued) + " of " +
                                           std::to_string(it->parts) + " parts were started"};
  if (it->waiting)
    it->request.page->page().advance(*it->request.await);
  completions_->signal(); // the request may end without a step in flight
  return true;
}

std::vector<completion> copy_stream::drain() {
  for (auto& over : completions_->take())
    finish(std::move(over));
  issue_more();
  std::vector<completion> ended;
  collect(ended);
  return ended;
}

result<void> copy_stream::check() {
  if (!lost_)
    if (auto alive = engine_->check(); !alive)
      lose(alive.error());
  if (lost_)
    return tl::unexpected(*lost_);
  return {};
}

copy_stream::entry* copy_stream::find(uint64_t serial) {
  // Serials are ascending, but cancelled ones leave gaps.
  auto it = std::lower_bound(queue_.begin(), queue_.end(), serial,
                             [](const entry& one, uint64_t wanted) { return one.serial < wanted; });
  return it != queue_.end() && it->serial == serial ? &*it : nullptr;
}

void copy_stream::issue_more() {
  issue_all();
  if (lost_)
    return;
  if (auto ok = engine_->flush(); !ok)
    lose(ok.error());
}

void copy_stream::issue_all() {
  for (auto& one : queue_) {
    while (!lost_ && !one.failure && one.issued < one.parts) {
      if (flight_.size() >= options_.parts_in_flight_max)
        return;
      if (!one.awaited) {
        // The previous step may take long; then the device itself waits, and nothing is issued after the
        // wait: a cancelled copy must not run because its wait was ended.
        if (one.waiting)
          return;
        if (!one.request.page->page().has(*one.request.await)) {
          one.waiting = issue(one, {});
          return;
        }
        one.awaited = true;
      }
      auto bytes = bytes_of(one.request.parts[one.issued]);
      if (bytes_in_flight_ > 0 &&
          bytes > options_.bytes_in_flight_max - std::min(bytes_in_flight_, options_.bytes_in_flight_max))
        return;
      if (!issue(one, one.issued))
        break;
    }
    if (lost_)
      return;
  }
}

bool copy_stream::issue(entry& owner, std::optional<size_t> part) {
  const auto& request = owner.request;
  copy_engine::step wanted;
  wanted.ticket = next_ticket_++;
  wanted.request = owner.serial;
  wanted.way = way_;
  wanted.region = request.region.get();
  wanted.object = request.object.get();
  wanted.page = request.page.get();
  if (part)
    wanted.part = &request.parts[*part];
  else
    wanted.await = request.await;
  // The step is counted first: if the device is lost here, it may still access the memory of what was issued.
  step started{wanted.ticket, owner.serial, part, part ? bytes_of(*wanted.part) : 0};
  bytes_in_flight_ += started.bytes;
  flight_.push_back(started);
  ++owner.in_flight;
  if (part)
    owner.issued = *part + 1;
  auto ok = engine_->issue(wanted);
  if (!ok && ok.error().code == errc::gone) {
    lose(ok.error());
  } else if (!ok) {
    owner.failure = ok.error();
    flight_.back().failed = true;
  }
  return bool(ok);
}

void copy_stream::finish(over_part over) {
  if (lost_ || flight_.empty() || flight_.front().ticket != over.ticket)
    return; // the completion is from before the loss
  auto started = flight_.front();
  flight_.pop_front();
  bytes_in_flight_ -= started.bytes;
  auto* owner = find(started.serial); // a request exists while it has something in flight
  --owner->in_flight;
  if (!started.part) {
    owner->waiting = false;
    owner->awaited = true;
  }
  if (over.failure) {
    if (!owner->failure)
      owner->failure = std::move(over.failure);
  } else if (started.part && !started.failed) {
    // After a failed part later ones may have arrived; only the leading ones count.
    if (owner->done == *started.part)
      ++owner->done;
    const auto& part = owner->request.parts[*started.part];
    if (part.signal)
      owner->request.page->page().wake(part.signal->slot);
  }
}

void copy_stream::collect(std::vector<completion>& ended) {
  auto over = [](const entry& one) { return one.in_flight == 0 && (one.failure || one.done == one.parts); };
  for (const auto& one : queue_)
    if (over(one))
      ended.push_back({one.id, one.done, one.done == one.parts ? std::nullopt : one.failure});
  std::erase_if(queue_, [&](const entry& one) { return over(one); });
}

void copy_stream::lose(const error& reason) {
  lost_ = error{errc::gone, reason.text};
  flight_.clear();
  bytes_in_flight_ = 0;
  for (auto& one : queue_) {
    if (one.waiting)
      one.request.page->page().advance(*one.request.await);
    if (one.in_flight > 0)
      quarantine_.push_back(std::move(one.request)); // the addresses of its parts must not change
    one.in_flight = 0;
    one.failure = lost_;
  }
  completions_->signal();
}

} // namespace terrace::gpu
