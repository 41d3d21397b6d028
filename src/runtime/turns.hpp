// Turns: what an actor does after each message that it handles, whichever it is. An actor that must report its changes,
// or send what has collected, says so once:
//
//   tier_actor::behavior_type tier_behavior(tier_pointer self) {
//     self->each_turn({}, [self] { send_news(self); });
//     return self->in_turns([self](const probe_request& request) { return on_probe(self, request); }, ...);
//   }
//
// A turn is the handling of one message, or of one answer to a request of the actor: `request(...).then(...)` and
// coroutines that await answers (ask.hpp) continue in a turn of their own. The value that a handler returns is sent after
// the turn.
#pragma once

#include <caf/actor_config.hpp>
#include <caf/duration.hpp>
#include <caf/message_priority.hpp>

#include <cassert>
#include <functional>
#include <type_traits>
#include <utility>

namespace terrace::runtime {

/// Mixin: `Base` that handles messages in turns. If a handler throws, its turn has no end.
template <class Base>
class turns : public Base {
 public:
  explicit turns(caf::actor_config& config) : Base(config) {}

  /// `begin` is called before each turn, and `end` after it; either may be null. Once, before `in_turns`.
  void each_turn(std::function<void()> begin, std::function<void()> end) {
    assert(!begin_ && !end_);
    begin_ = std::move(begin);
    end_ = std::move(end);
  }

  /// Makes the actor's behavior of its handlers. The start of the actor, which calls this last, is its first turn.
  template <class... Handlers>
  auto in_turns(Handlers... handlers) {
    run(end_);
    return typename Base::behavior_type{in_turn(std::move(handlers), &Handlers::operator())...};
  }

  template <class Asked>
  class answer_in_turn {
   public:
    answer_in_turn(turns* self, Asked asked) : self_(self), asked_(std::move(asked)) {}
    template <class F, class OnError>
    void then(F answered, OnError failed) const {
      asked_.then(self_->in_turn(std::move(answered), &F::operator()),
                  self_->in_turn(std::move(failed), &OnError::operator()));
    }

   private:
    turns* self_;
    Asked asked_;
  };

  template <caf::message_priority P = caf::message_priority::normal, class Actor, class Message>
  auto request(const Actor& to, const caf::duration& timeout, Message&& message) {
    auto asked = Base::template request<P>(to, timeout, std::forward<Message>(message));
    return answer_in_turn<decltype(asked)>(this, std::move(asked));
  }

 private:
  static void run(const std::function<void()>& work) {
    if (work)
      work();
  }

  template <class F, class R, class... Args>
  R handle(F& handler, Args&&... args) {
    run(begin_);
    if constexpr (std::is_void_v<R>) {
      handler(std::forward<Args>(args)...);
      run(end_);
    } else {
      R value = handler(std::forward<Args>(args)...);
      run(end_);
      return value;
    }
  }

  template <class F, class R, class... Args>
  auto in_turn(F handler, R (F::*)(Args...) const) {
    return [this, handler = std::move(handler)](Args... args) mutable -> R {
      return handle<F, R>(handler, std::forward<Args>(args)...);
    };
  }
  template <class F, class R, class... Args>
  auto in_turn(F handler, R (F::*)(Args...)) {
    return [this, handler = std::move(handler)](Args... args) mutable -> R {
      return handle<F, R>(handler, std::forward<Args>(args)...);
    };
  }

  std::function<void()> begin_, end_;
};

} // namespace terrace::runtime
