// Requests that a coroutine awaits (task.hpp).
//
//   auto found = co_await ask<probe_answer>(self, host, std::move(question), "host tier");
//   if (!found) co_return found.error();                    // "the host tier has ended"
//
//   std::vector<question<tier_actor, probe_request>> both = ...;
//   auto answers = co_await ask_all<probe_answer>(self, std::move(both), "tier");  // in the questions' order
//
// The actor may be typed or not. A request fails only if the actor that was asked has ended: there is no
// timeout. An answer with a failure of its own (`answer.failure`) is an answer.
#pragma once

#include "base/error.hpp"
#include "runtime/task.hpp"

#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/message_priority.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// One of several requests that are sent together.
template <class Whom, class Request>
struct question {
  Whom whom;
  Request request;
  caf::message_priority priority = caf::message_priority::normal;
};

namespace detail {

inline error has_ended(const char* who) { return {errc::internal, std::string("the ") + who + " has ended"}; }

template <class Self, class Whom, class Request, class Answered, class Lost>
void send_request(Self* self, question<Whom, Request>&& asked, Answered answered, Lost lost) {
  if (asked.priority == caf::message_priority::high)
    self->template request<caf::message_priority::high>(asked.whom, caf::infinite, std::move(asked.request))
        .then(std::move(answered), std::move(lost));
  else
    self->request(asked.whom, caf::infinite, std::move(asked.request))
        .then(std::move(answered), std::move(lost));
}

template <class Answer, class Self, class Whom, class Request>
class [[nodiscard]] asking {
 public:
  asking(Self* self, question<Whom, Request> question_, const char* who)
      : self_(self), what_(std::move(question_)), who_(who) {}

  bool await_ready() const noexcept { return false; }

  /// The frame keeps this object until the frame is resumed or destroyed; `link` tells which.
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    auto link = frame.promise().link;
    send_request(
        self_, std::move(what_),
        [this, link, frame](Answer& got) {
          if (!link->alive())
            return;
          answer_.emplace(std::move(got));
          link->resume(frame);
        },
        [this, link, frame](const caf::error&) {
          if (link->alive())
            link->resume(frame);
        });
  }

  result<Answer> await_resume() {
    if (answer_)
      return std::move(*answer_);
    return tl::unexpected(has_ended(who_));
  }

 private:
  Self* self_;
  question<Whom, Request> what_;
  const char* who_;
  std::optional<Answer> answer_;
};

template <class Answer, class Self, class Whom, class Request>
class [[nodiscard]] asking_all {
 public:
  asking_all(Self* self, std::vector<question<Whom, Request>> what, const char* who)
      : self_(self), what_(std::move(what)), who_(who), answers_(what_.size()) {}

  bool await_ready() const noexcept { return what_.empty(); }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    auto link = frame.promise().link;
    waiting_for_ = what_.size();
    auto one_less = [this, link, frame] {
      if (--waiting_for_ == 0)
        link->resume(frame);
    };
    for (size_t i = 0; i < answers_.size(); ++i)
      send_request(
          self_, std::move(what_[i]),
          [this, link, one_less, i](Answer& got) {
            if (!link->alive())
              return;
            answers_[i].emplace(std::move(got));
            one_less();
          },
          [link, one_less](const caf::error&) {
            if (link->alive())
              one_less();
          });
  }

  std::vector<result<Answer>> await_resume() {
    std::vector<result<Answer>> all;
    all.reserve(answers_.size());
    for (auto& each : answers_) {
      if (each)
        all.emplace_back(std::move(*each));
      else
        all.emplace_back(tl::unexpected(has_ended(who_)));
    }
    return all;
  }

 private:
  Self* self_;
  std::vector<question<Whom, Request>> what_;
  const char* who_;
  std::vector<std::optional<Answer>> answers_;
  size_t waiting_for_ = 0;
};

} // namespace detail

/// Asks `whom` and returns its answer; `internal` ("the WHO has ended") if it ends before it answers. `who`:
/// a literal.
template <class Answer, class Self, class Whom, class Request>
detail::asking<Answer, Self, Whom, Request>
ask(Self* self, const Whom& whom, Request request, const char* who,
    caf::message_priority priority = caf::message_priority::normal) {
  return {self, {whom, std::move(request), priority}, who};
}

/// Returns all answers in the order of the questions, once the last has arrived.
template <class Answer, class Self, class Whom, class Request>
detail::asking_all<Answer, Self, Whom, Request> ask_all(Self* self, std::vector<question<Whom, Request>> what,
                                                        const char* who) {
  return {self, std::move(what), who};
}

} // namespace terrace
