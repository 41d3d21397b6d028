// How a verb waits: what `co_await` does for each function of request.hpp that a verb may await. Each holds what it needs until
// the verb goes on, and ends the request if it cannot.
#pragma once

#include "actors/connection/request.hpp"

namespace terrace::actors {

template <class T>
struct client_request::checking {
  client_request& request;
  const T& made;
  bool await_ready() const noexcept {
    if constexpr (std::is_same_v<T, error>)
      return made.code == errc::ok;
    else
      return made.has_value();
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    if constexpr (std::is_same_v<T, error>)
      request.fail(made);
    else
      request.fail(made.error());
  }
  void await_resume() const noexcept {}
};

/// Something that the client has, or why the request is refused.
template <class T>
struct client_request::finding {
  client_request& request;
  result<T> found;
  bool await_ready() const noexcept { return found.has_value(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    request.fail(found.error());
  }
  T await_resume() { return std::move(*found); }
};

struct client_request::granting {
  client_request& request;
  error failure;
  bool await_ready() const noexcept { return failure.code == errc::ok; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    request.fail(failure);
  }
  void await_resume() const noexcept {}
};

template <class Answer, class Whom, class Message>
struct client_request::asking {
  client_request& request;
  Whom whom;
  Message message;
  const char* lost;
  std::optional<Answer> got{};

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    continuation next(request, frame);
    request.actor.ask(
        whom, std::move(message),
        [this, next](Answer& answer) {
          if (!next.alive())
            return;
          got.emplace(std::move(answer));
          next.go_on();
        },
        [next, lost = lost] {
          next.fail({errc::internal, lost});
        });
  }
  Answer await_resume() { return std::move(*got); }
};

/// `alone`: no further request begins meanwhile, because it is not known how many chunks this one has.
template <class Answer, class Whom, class Message>
struct client_request::trying : client_request::asking<Answer, Whom, Message> {
  bool alone = false;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    continuation next(this->request, frame);
    client_inbox& inbox = this->request.inbox();
    if (alone)
      inbox.gate().cost_unknown();
    auto go_on = [&inbox, next, alone = alone] {
      if (alone)
        inbox.gate().cost_known();
      next.go_on();
      if (alone)
        inbox.pump();
    };
    this->request.actor.ask(
        this->whom, std::move(this->message),
        [this, next, go_on](Answer& answer) {
          if (next.alive())
            this->got.emplace(std::move(answer));
          go_on();
        },
        go_on);
  }
  result<Answer> await_resume() {
    if (this->got)
      return std::move(*this->got);
    return tl::unexpected(error{errc::internal, this->lost});
  }
};

template <class Answer, class Message>
struct client_request::asking_tiers {
  client_request& request;
  std::vector<result<Answer>> got{};
  size_t missing = 0;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    continuation next(request, frame);
    const auto& tiers = request.client.group().tiers();
    missing = tiers.size();
    got.assign(missing, tl::unexpected(error{errc::internal, "a tier has ended"}));
    auto one_less = [this, next] {
      if (next.alive() && --missing == 0)
        next.go_on();
    };
    for (size_t i = 0; i < tiers.size(); ++i)
      request.actor.ask(
          tiers[i].tier, Message{},
          [this, next, one_less, i](Answer& answer) {
            if (next.alive())
              got[i] = std::move(answer);
            one_less();
          },
          one_less);
  }
  std::vector<result<Answer>> await_resume() { return std::move(got); }
};

/// No further request begins meanwhile: it is not known how many chunks this one has.
template <class Message, class Answer>
struct client_request::asking_group {
  client_request& request;
  Message message;
  Answer got{};

  bool await_ready() {
    if constexpr (std::is_same_v<Message, use_lease_request>)
      got.found = request.client.holdings().lease_of(message.id);
    if constexpr (std::is_same_v<Message, use_lease_request>)
      return got.found != nullptr;
    else
      return false;
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    continuation next(request, frame);
    client_inbox& inbox = request.inbox();
    inbox.gate().cost_unknown();
    auto go_on = [this, next](Answer& answer) {
      if (!next.alive())
        return;
      if constexpr (requires { answer.failure; })
        if (answer.failure.code != errc::ok) {
          next.fail(answer.failure);
          return;
        }
      got = std::move(answer);
      next.go_on();
    };
    request.actor.ask(
        request.client.group().group, std::move(message),
        [&inbox, go_on](Answer& answer) {
          inbox.gate().cost_known();
          go_on(answer);
          inbox.pump();
        },
        [&inbox, next] {
          inbox.gate().cost_known();
          next.fail({errc::internal, "the trust group's actor has ended"});
        });
  }
  auto await_resume() {
    if constexpr (requires { got.found; })
      return std::move(got.found);
  }
};

struct client_request::waiting_for_turn {
  client_request& request;
  const char* doing;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    request.actor.resume([next = continuation(request, frame), context = request.context, doing = doing] {
      if (context->live())
        next.go_on();
      else
        next.fail({context->ended.load(), std::string("the request ended while ") + doing});
    });
  }
  void await_resume() const noexcept {}
};

struct client_request::waiting_for_room {
  client_request& request;
  size_t objects;
  bool await_ready() { return request.inbox().charge(request, objects); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    request.inbox().wait_for_room(request, objects, continuation(request, frame));
  }
  void await_resume() {
    if (std::exchange(request.expects_, false))
      request.inbox().objects_are_known(request);
  }
};

struct client_request::waiting_for_teardown {
  client_request& request;
  const char* text;
  bool leases;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    auto next = [next = continuation(request, frame), context = request.context, text = text] {
      if (text == nullptr || context->live())
        next.go_on();
      else
        next.fail({context->ended.load(), std::string("the request ended before ") + text});
    };
    if (leases)
      request.actor.resume_after_lease_ends(request, std::move(next));
    else
      request.actor.resume_after_teardown(request, std::move(next));
  }
  void await_resume() const noexcept {}
};

struct client_request::waiting_for_change {
  client_request& request;
  change_count& changes;
  uint64_t number;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    // Whichever comes first, once.
    auto again = std::make_shared<std::function<void()>>(
        [next = continuation(request, frame), told = false]() mutable {
          if (!std::exchange(told, true))
            next.go_on();
        });
    request.actor.when_ended(request.context, again);
    changes.wait(number, request.context, request.actor.on_any_thread([again] { (*again)(); }));
  }
  void await_resume() const noexcept {}
};

struct client_request::waiting_for_counter {
  client_request& request;
  client_counter counter;
  uint32_t value;
  device_memory_ptr memory;
  bool await_ready() const { return counter.has(value); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    request.actor.wait_for_counter(request, counter, value, memory, continuation(request, frame));
  }
  void await_resume() const noexcept {}
};

inline client_request::waiting_for_turn client_request::turn(const char* doing) {
  return waiting_for_turn{*this, doing};
}
inline client_request::waiting_for_room client_request::room(size_t objects) {
  return waiting_for_room{*this, objects};
}
inline client_request::asking_group<use_lease_request, use_lease_answer>
client_request::lease(const lease_id& wanted) {
  return asking_group<use_lease_request, use_lease_answer>{*this, use_lease_request{wanted}};
}
inline client_request::asking_group<refer_tail_request, refer_tail_answer>
client_request::tail(const space_ptr& space, const digest& key) {
  return asking_group<refer_tail_request, refer_tail_answer>{
      *this, refer_tail_request{space, key, client.record()->id}};
}
inline client_request::waiting_for_teardown client_request::unmapped(const char* text) {
  return waiting_for_teardown{*this, text, false};
}
inline client_request::waiting_for_teardown client_request::leases_ended(const char* text) {
  return waiting_for_teardown{*this, text, true};
}
inline client_request::waiting_for_change client_request::changed(change_count& changes, uint64_t number) {
  return waiting_for_change{*this, changes, number};
}
inline client_request::waiting_for_counter
client_request::counted(const client_counter& counter, uint32_t value, const device_memory_ptr& memory) {
  return waiting_for_counter{*this, counter, value, memory};
}
inline client_request::granting client_request::may_govern(const char* why) {
  return {*this, client.may_govern(why)};
}
inline client_request::granting client_request::may_map(const char* instead) {
  return {*this, client.may_map(instead)};
}

} // namespace terrace::actors
