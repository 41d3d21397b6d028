// A request in progress, whatever its result is.
#pragma once

#include "leases.hpp"
#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>

namespace terrace::python {

/// What a request needs besides its ticket to make Python's result.
struct answer_context {
  std::shared_ptr<shared_connection> in;
  std::shared_ptr<held_lease> held; ///< lease of the objects that are read; the objects keep it
  /// Called once with the end of the request: the answer's code, or given up. Called with the GIL.
  std::function<void(errc)> ended = {};
};

nb::object to_python(const answer_context& with, client::lookup_result&& found);
nb::object to_python(const answer_context& with, client::located_objects&& located);
nb::object to_python(const answer_context& with, client::load_result&& loaded);
nb::object to_python(const answer_context& with, client::store_result&& stored);
nb::object to_python(const answer_context& with, client::reservation&& reserved);
nb::object to_python(const answer_context& with, client::announced_chunks&& announced);

class ticket {
 public:
  virtual ~ticket() = default;

  /// True if the answer is among those that the connection has received. Never waits: false also while
  /// another thread uses it.
  virtual bool done() = 0;

  /// Waits for the answer and takes it. After a `deadline` of its own it may be called again.
  virtual nb::object take(client::deadline until) = 0;

  /// Asks the daemon to end the request and forgets it. Never waits.
  virtual void cancel() = 0;
};

template <class T>
class ticket_of final : public ticket {
 public:
  ticket_of(answer_context with, client::ticket<T> under_way)
      : with_(std::move(with)), under_way_(std::move(under_way)) {}
  ~ticket_of() override {
    if (under_way_)
      with_.in->give_back(std::move(under_way_));
    end(errc::cancelled);
  }

  bool done() override {
    if (!under_way_ || with_.in->closed())
      return true;
    bool ready = false;
    with_.in->use_if_free([&](client::connection&) { ready = under_way_.ready(); });
    return ready;
  }

  nb::object take(client::deadline until) override {
    if (!under_way_)
      refuse("expected a request under way, got one whose result was taken, or that was cancelled");
    auto got = with_.in->use(
        until, [&](client::connection& daemon) { return await_answer(daemon, under_way_, until); });
    if (!under_way_)
      end(got ? errc::ok : got.error().code);
    return to_python(with_, value_of(std::move(got)));
  }

  void cancel() override {
    if (under_way_)
      with_.in->give_back(std::move(under_way_),
                          [](client::connection&, client::ticket<T>& left) { left.give_up(); });
    end(errc::cancelled);
  }

 private:
  void end(errc answer) {
    if (auto tell = std::exchange(with_.ended, nullptr))
      tell(answer);
  }

  answer_context with_;
  client::ticket<T> under_way_;
};

/// Python's terrace.Ticket.
struct ticket_handle {
  std::unique_ptr<ticket> request;
};

/// Sends a request by `submit(client::connection&)` and waits for its answer. A request that ran out of time
/// or was interrupted is cancelled.
template <class T, class Submit>
result<T> answer_of(shared_connection& in, client::deadline until, Submit&& submit) {
  return in.use(until, [&](client::connection& daemon) -> result<T> {
    result<client::ticket<T>> sent = submit(daemon);
    if (!sent)
      return tl::unexpected<error>(sent.error());
    struct at_end {
      client::ticket<T>& under_way;
      ~at_end() {
        if (under_way)
          under_way.give_up();
      }
    } give_up{*sent};
    return await_answer(daemon, *sent, until);
  });
}

/// Sends the request, waits, and returns Python's result.
template <class T, class Submit>
nb::object ask(const answer_context& with, client::deadline until, Submit&& submit) {
  return to_python(with, value_of(answer_of<T>(*with.in, until, submit)));
}

/// Sends the request and returns a terrace.Ticket.
template <class T, class Submit>
nb::object begin(const answer_context& with, client::deadline until, Submit&& submit) {
  auto sent = value_of(with.in->use(until, submit));
  return nb::cast(ticket_handle{std::make_unique<ticket_of<T>>(with, std::move(sent))});
}

void bind_tickets(nb::module_& in);

} // namespace terrace::python
