// A connection with all that was taken from it, used by one thread of Python at a time.
//
// libterrace's connection belongs to one thread. Python's threads share it by taking turns: `use` lets go of the GIL and
// waits until nobody else is inside. Handles (leases, tickets, ...) end when their last reference goes, in whatever
// thread that is, possibly while another waits inside for an answer: `give_back` never waits, and leaves the handle to
// whoever is inside then.
//
// A forked child inherits the socket. It must not send a byte on it, or the parent's requests would be torn: calls are
// refused there, and handles are forgotten without giving back what is the parent's.
#pragma once

#include "client/client.hpp"
#include "failure.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

namespace terrace::python {

namespace nb = nanobind;

class shared_connection {
 public:
  explicit shared_connection(client::connection daemon) : daemon_(std::move(daemon)) {}
  ~shared_connection();
  shared_connection(const shared_connection&) = delete;
  shared_connection& operator=(const shared_connection&) = delete;

  /// Calls `call(client::connection&)` without the GIL, in turn. Throws `deadline` when the turn does not come in time,
  /// `gone` once `close` was called, `bad_request` in a forked child.
  template <class Call>
  auto use(client::deadline until, Call&& call) {
    check_process();
    check_open();
    nb::gil_scoped_release others_run;
    turn mine(*this, until);
    return call(*daemon_);
  }

  /// The same with the GIL and without waiting. False when another thread is inside, after `close` and in a child.
  template <class Call>
  bool use_if_free(Call&& call) {
    if (forked() || !in_turn_.try_lock())
      return false;
    turn mine(*this);
    if (daemon_)
      call(*daemon_);
    return daemon_.has_value();
  }

  /// Ends a handle of this connection without waiting; `first(client::connection&, Handle&)` is called before.
  template <class Handle, class First>
  void give_back(Handle&& handle, First first) {
    auto left = std::make_unique<left_handle<Handle, First>>(std::move(handle), first);
    if (forked()) {
      (void) left.release(); // the parent's
      return;
    }
    {
      std::lock_guard guard(left_guard_);
      left_.push_back(std::move(left));
    }
    end_left_handles();
  }
  template <class Handle>
  void give_back(Handle&& handle) {
    give_back(std::move(handle), [](client::connection&, Handle&) {});
  }

  /// A region, and whose memory it is.
  struct held_region {
    client::registered_region region; ///< empty: it was unregistered
    nb::object keeps;
    bool in_doubt = false; ///< the daemon has not said that nothing accesses the memory any more
  };
  /// One in memory of a device: its memory is kept until the daemon says so, at the latest to `close`. With the GIL.
  void keep(std::shared_ptr<held_region> region) { device_regions_.push_back(std::move(region)); }
  void let_go(const std::shared_ptr<held_region>& region) { std::erase(device_regions_, region); }

  /// Ends the connection when nobody is inside any more. Before, regions in memory of devices are unregistered, and their memory is
  /// let go afterwards; never, if the daemon does not answer by then, because a device may write there. With the GIL.
  void close(client::deadline until);
  bool closed() const { return closed_; } ///< with the GIL

 private:
  struct left_thing {
    virtual ~left_thing() = default;
    virtual void before_end(client::connection& in) = 0;
  };
  template <class Handle, class First>
  struct left_handle : left_thing {
    left_handle(Handle&& left, First act) : handle(std::move(left)), first(act) {}
    void before_end(client::connection& in) override { first(in, handle); }
    Handle handle;
    First first;
  };

  /// Being inside. At its end, handles that were left meanwhile are given back.
  class turn {
   public:
    turn(shared_connection& in, client::deadline until);
    explicit turn(shared_connection& in) : in_(in) {} ///< of a lock that is taken already
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    shared_connection& in_;
  };

  bool forked() const { return ::getpid() != process_; }
  void check_process() const;
  void check_open() const; ///< `close` is inside for long, and what comes after it gets nothing
  void end_device_regions(client::deadline until);
  bool has_left_handles();
  void end_left_handles();
  void end_left_handles_inside();

  const pid_t process_ = ::getpid();
  std::timed_mutex in_turn_; ///< held by the thread that is inside
  std::optional<client::connection> daemon_;
  bool closed_ = false; ///< guarded by the GIL
  std::mutex left_guard_;
  std::vector<std::unique_ptr<left_thing>> left_;
  std::vector<std::shared_ptr<held_region>> device_regions_; ///< guarded by the GIL
};

/// Waits for the ticket's answer, inside of a turn and without the GIL. A signal lets Python run its handler; what the
/// handler raises (KeyboardInterrupt) ends the wait, and the request is given up.
template <class T>
result<T> await_answer(client::connection& daemon, client::ticket<T>& under_way, client::deadline until);

/// Lets Python's handlers of signals run. Throws python_error when one raises.
void serve_signals();

inline client::deadline now() { return std::chrono::steady_clock::now(); }

template <class T>
result<T> await_answer(client::connection& daemon, client::ticket<T>& under_way, client::deadline until) {
  bool in_time = true;
  while (in_time && !under_way.ready()) {
    auto came = daemon.poll(until, client::on_signal::returns); // a loss makes it ready
    if (!came && !under_way.ready())
      return tl::unexpected(came.error()); // the connection is there, and cannot be waited for
    if (came && *came == 0) {
      serve_signals();
      in_time = !until || std::chrono::steady_clock::now() < *until;
    }
  }
  // Located objects may need a segment mapped first, which asks the daemon once more.
  return daemon.wait(under_way, in_time ? until : now());
}

} // namespace terrace::python
