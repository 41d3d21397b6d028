// A connection with everything that was taken from it, used by one thread of Python at a time.
//
// libterrace's connection belongs to one thread. Python's threads share it by taking turns: `use` releases
// the GIL and waits until nobody else is inside. Handles (leases, tickets, ...) end when their last reference
// goes, in whatever thread that is, possibly while another thread waits inside for an answer: `give_back`
// never waits, and leaves the handle to the thread that is inside.
//
// A forked child inherits the socket. It must not send a byte on it, or the parent's requests would be torn:
// calls are refused there, and handles are forgotten without giving back what belongs to the parent.
#pragma once

#include "client/client.hpp"
#include "failure.hpp"
#include "gil.hpp"

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

  /// Waits for its turn and calls `call(client::connection&)` without the GIL. Throws `deadline` if the turn
  /// does not come in time, `gone` once `close` was called, `bad_request` in a forked child.
  template <class Call>
  auto use(client::deadline until, Call&& call) {
    check_process();
    check_open();
    gil_released others_run;
    turn mine(*this, until);
    return call(*daemon_);
  }

  /// Calls it with the GIL and without waiting. Returns false if another thread is inside, after `close` and
  /// in a child.
  template <class Call>
  bool use_if_free(Call&& call) {
    if (forked() || !in_turn_.try_lock())
      return false;
    turn mine(*this);
    if (daemon_)
      call(*daemon_);
    return daemon_.has_value();
  }

  /// Ends a handle of this connection without waiting; calls `first(client::connection&, Handle&)` before.
  template <class Handle, class First>
  void give_back(Handle&& handle, First first) {
    auto left = std::make_unique<left_handle<Handle, First>>(std::move(handle), first);
    if (forked()) {
      (void) left.release(); // it belongs to the parent
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

  /// A region and the owner of its memory.
  struct held_region {
    client::registered_region region; ///< empty: the region was unregistered
    nb::object keeps;
    bool in_doubt = false; ///< the daemon has not yet said that nothing accesses the memory any more
  };
  /// Keeps the memory of a region on a device until the daemon says that nothing accesses it, at the latest
  /// until `close`. Called with the GIL.
  void keep(std::shared_ptr<held_region> region) { device_regions_.push_back(std::move(region)); }
  void let_go(const std::shared_ptr<held_region>& region) { std::erase(device_regions_, region); }

  /// Ends the connection when nobody is inside any more. Before that it unregisters regions in memory of
  /// devices, and releases their memory afterwards. If the daemon does not answer by the deadline, that
  /// memory is never released, because a device may write there. Called with the GIL.
  void close(client::deadline until);
  bool closed() const { return closed_; } ///< called with the GIL

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

  /// Represents being inside. Its destructor gives back the handles that were left meanwhile.
  class turn {
   public:
    turn(shared_connection& in, client::deadline until);
    explicit turn(shared_connection& in) : in_(in) {} ///< the lock is already taken
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    shared_connection& in_;
  };

  bool forked() const { return ::getpid() != process_; }
  void check_process() const;
  void check_open() const; ///< `close` may be inside for a long time, and later callers are refused
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

/// Waits for the ticket's answer, inside of a turn and without the GIL. A signal lets Python run its handler;
/// an exception from the handler (KeyboardInterrupt) ends the wait, and the request is given up.
template <class T>
result<T> await_answer(client::connection& daemon, client::ticket<T>& under_way, client::deadline until);

/// Lets Python's signal handlers run. Throws python_error if one raises.
void serve_signals();

inline client::deadline now() { return std::chrono::steady_clock::now(); }

template <class T>
result<T> await_answer(client::connection& daemon, client::ticket<T>& under_way, client::deadline until) {
  bool in_time = true;
  while (in_time && !under_way.ready()) {
    auto came = daemon.poll(until, client::on_signal::returns); // a loss makes the ticket ready
    if (!came && !under_way.ready())
      return tl::unexpected(came.error()); // the connection exists, but cannot be waited for
    if (came && *came == 0) {
      serve_signals();
      in_time = !until || std::chrono::steady_clock::now() < *until;
    }
  }
  // Located objects may need a segment mapped first, which asks the daemon once more.
  return under_way.wait(in_time ? until : now());
}

} // namespace terrace::python
