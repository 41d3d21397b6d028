#include "shared_connection.hpp"

#include <utility>

namespace terrace::python {

namespace {

/// Time limit for a connection that nobody has closed: more than the daemon gives the process of a GPU
/// (gpu.deadline).
constexpr std::chrono::seconds patience{60};

constexpr const char* closed_text = "this connection was closed";

} // namespace

shared_connection::~shared_connection() {
  if (forked()) {
    if (daemon_) // its destructor closes our copy of the socket; nothing is sent
      (void) new client::connection(std::move(*daemon_));
    for (auto& left : left_)
      (void) left.release();
    for (auto& each : device_regions_)
      (void) new std::shared_ptr(std::move(each));
  } else if (daemon_) {
    end_device_regions(client::within(patience));
  }
}

/// Called with the GIL, in a turn or alone. The connection has ended then.
void shared_connection::end_device_regions(client::deadline until) {
  auto held = std::exchange(device_regions_, {});
  std::vector<client::registered_region> regions;
  for (auto& each : held)
    regions.push_back(std::move(each->region));
  std::vector<bool> in_doubt;
  {
    gil_released others_run;
    for (auto& region : regions) {
      auto ended = region ? region.unregister(until) : result<void>();
      in_doubt.push_back(!ended &&
                         ended.error().code != errc::gone); // without a daemon no process of a GPU lives
    }
    daemon_.reset();
  }
  for (size_t i = 0; i < held.size(); ++i)
    if (in_doubt[i] || held[i]->in_doubt)
      (void) held[i]->keeps.release();
    else
      held[i]->keeps.reset();
}

void shared_connection::check_process() const {
  if (forked())
    refuse("expected the process that made this connection (" + std::to_string(process_) +
           "), got its child: connect again after a fork");
}

void shared_connection::check_open() const {
  if (closed_)
    throw failure({errc::gone, closed_text});
}

shared_connection::turn::turn(shared_connection& in, client::deadline until) : in_(in) {
  if (!until)
    in.in_turn_.lock();
  else if (!in.in_turn_.try_lock_until(*until))
    throw failure({errc::deadline, "another thread used this connection all the time; open one a thread"});
  if (in.daemon_)
    return;
  in.in_turn_.unlock();
  throw failure({errc::gone, closed_text});
}

shared_connection::turn::~turn() {
  in_.end_left_handles_inside();
  in_.in_turn_.unlock();
  in_.end_left_handles(); // ends handles that came since
}

bool shared_connection::has_left_handles() {
  std::lock_guard guard(left_guard_);
  return !left_.empty();
}

void shared_connection::end_left_handles() {
  while (has_left_handles() && in_turn_.try_lock()) {
    end_left_handles_inside();
    in_turn_.unlock();
  }
}

void shared_connection::end_left_handles_inside() {
  std::vector<std::unique_ptr<left_thing>> left;
  {
    std::lock_guard guard(left_guard_);
    left.swap(left_);
  }
  for (auto& thing : left)
    if (daemon_)
      thing->before_end(*daemon_);
}

void shared_connection::close(client::deadline until) {
  closed_ = true;
  if (forked()) {
    if (daemon_)
      (void) new client::connection(std::move(*daemon_));
    daemon_.reset();
    return;
  }
  {
    gil_released others_run;
    std::lock_guard mine(in_turn_);
    end_left_handles_inside();
    nb::gil_scoped_acquire python;
    if (daemon_)
      end_device_regions(until ? until : client::within(patience));
  }
  end_left_handles(); // ends handles that came since, which keep the socket open
}

void serve_signals() {
  nb::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0)
    throw nb::python_error();
}

} // namespace terrace::python
