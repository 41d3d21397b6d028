#include "tests/fuzz/verb_session.hpp"

#include "tests/fuzz/promise.hpp"
#include "tests/fuzz/verb_frames.hpp"
#include "tests/fuzz/verb_group.hpp"

#include <sys/eventfd.h>
#include <sys/random.h>

#include <cstring>
#include <random>

namespace {
std::mt19937_64 random_numbers;
} // namespace

/// Ids of leases are random. Here they are the same in each run.
extern "C" ssize_t getrandom(void* to, size_t bytes, unsigned) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(random_numbers());
  return static_cast<ssize_t>(bytes);
}

namespace terrace::fuzz {

using protocol::kind;

namespace {

constexpr size_t clients_max = 4;
constexpr size_t steps_max = 200;
constexpr auto longest = std::chrono::milliseconds(600'001); // no deadline is later

class session {
 public:
  explicit session(input_bytes& from)
      : from_(from), options_(from.take()), group_({.shuffled = (options_ & 1) != 0,
                                                    .isolated = (options_ & 6) == 6,
                                                    .shadows = (options_ & 8) != 0}) {}

  session_report run() {
    for (size_t n = 0; n < steps_max && !from_.empty(); ++n)
      take_step();
    finish();
    return report_;
  }

 private:
  void settle() {
    group_.settle();
    left_busy_ = false;
  }

  void take_step() {
    auto what = static_cast<uint8_t>(from_.take() % steps);
    size_t who = from_.take() % clients_max;
    auto& client = clients_[who];
    auto now = static_cast<step>(what);
    if (now == step::connect || now == step::greet) {
      connect(who, now == step::greet);
    } else if (now == step::pass) {
      group_.pass(std::chrono::milliseconds(1U << from_.take() % 20));
    } else if (!client) {
      return;
    } else if (now == step::close) {
      leave(who, false);
    } else if (now == step::end_process) {
      leave(who, true);
    } else if (now == step::raw) {
      asks_more();
      client->queue(from_.take(size_t{from_.take()}));
    } else if (now == step::stop_reading || now == step::read_again) {
      client->reads = now == step::read_again;
    } else if (now == step::mutate) {
      kind verb{};
      uint64_t request = client->next_request++;
      auto made = make_mutated(request, from_, verb);
      asks_more();
      client->queue_frame(request, verb, std::move(made.bytes), std::move(made.descriptor));
    } else {
      ask(*client, static_cast<kind>(what - static_cast<uint8_t>(step::first_verb) + 1));
    }
    go_on(clients_[who].get());
  }

  void ask(verb_client& client, kind verb) {
    uint64_t request = client.next_request++;
    bool alone = verb == kind::clear && all_answered();
    auto made = make_request(verb, request, from_, client, shared_);
    asks_more();
    if (alone && made.clears_all)
      client.clears = request;
    client.queue_frame(request, verb, std::move(made.bytes), std::move(made.descriptor));
  }

  /// Something is sent: a clear before it does not mean that nothing is found any more.
  void asks_more() {
    for (auto& client : clients_)
      if (client)
        client->clears.reset();
  }

  bool all_answered() const {
    return !left_busy_ && std::all_of(clients_.begin(), clients_.end(), [](const auto& one) {
      return !one || (one->counts() && one->answered());
    });
  }

  void connect(size_t who, bool hello) {
    if (clients_[who])
      leave(who, false);
    if (!processes_[who])
      processes_[who] = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC));
    uid_t uid = who == 3 ? 4711 : 0; // one that may not govern
    clients_[who] = std::make_unique<verb_client>(
        group_.connect(static_cast<pid_t>(100 + who), uid, processes_[who]), processes_[who], shared_);
    if (hello)
      ask(*clients_[who], kind::hello);
  }

  /// Its socket closes; its process may end with it.
  void leave(size_t who, bool with_process) {
    verb_client& client = *clients_[who];
    left_busy_ = left_busy_ || !client.answered() || !client.counts();
    if (with_process) {
      client.end_process();
      processes_[who].reset();
    }
    for (size_t verb = 0; verb < verb_client::verbs; ++verb) {
      report_.served[verb] += client.served[verb];
      report_.refused[verb] += client.refused[verb];
    }
    report_.trace = report_.trace * 31 + client.trace;
    report_.ended += client.ended() ? 1 : 0;
    clients_[who].reset();
  }

  /// How much is sent, and how far the daemon gets.
  void go_on(verb_client* client) {
    uint8_t how = from_.take();
    if (client != nullptr)
      client->send(how % 4 >= 2 ? size_t{how} / 4 + 1 : SIZE_MAX);
    if (how % 4 == 0 || how % 4 == 2)
      settle();
    else
      group_.run_some(how / 4);
    receive();
  }

  void receive() {
    for (auto& client : clients_) {
      if (!client)
        continue;
      client->receive();
      if (std::exchange(client->cleared, false))
        promise_equal(group_.findable(), 0U, "objects that are found after a clear was answered");
    }
  }

  void finish() {
    for (auto& client : clients_)
      if (client)
        client->reads = true;
    // What is in line is sent as the daemon takes it, and what waits is answered at its deadline.
    for (int round = 0; round < 4; ++round) {
      for (int turn = 0; turn < 8; ++turn) {
        for (auto& client : clients_)
          if (client)
            client->send();
        group_.settle();
        receive();
      }
      group_.pass(longest);
      receive();
    }
    for (auto& client : clients_)
      if (client && client->counts() && !client->ended() && !client->answered())
        broken("request " + std::to_string(client->unanswered().begin()->first) + " (" +
               std::string(to_string(client->unanswered().begin()->second)) + ") is not answered");
    for (size_t who = 0; who < clients_max; ++who)
      if (clients_[who])
        leave(who, false);
    group_.settle();
    for (auto& process : processes_) {
      uint64_t one = 1;
      if (process)
        promise(::write(process->get(), &one, sizeof one) == sizeof one, "a process can end");
    }
    group_.settle();
    group_.check_empty();
  }

  input_bytes& from_;
  uint8_t options_;
  verb_group group_;
  shared_knowledge shared_;
  std::array<std::shared_ptr<unique_fd>, clients_max> processes_;
  std::array<std::unique_ptr<verb_client>, clients_max> clients_;
  bool left_busy_ = false; ///< of one that left, requests may still be served
  session_report report_;
};

} // namespace

session_report play(std::span<const uint8_t> input) {
  random_numbers.seed(1);
  input_bytes from(input);
  session played(from);
  return played.run();
}

} // namespace terrace::fuzz
