#include "actor_scheduler.hpp"

#include "daemon_heap.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <typeinfo>
#include <utility>

namespace terrace::simulation {

namespace {

/// Virtual time begins at a time that is not the clock's zero, so that times before the start exist.
constexpr std::chrono::hours clock_at_start{1000};

uint64_t number_of(const std::string& text) {
  uint64_t number = 0xcbf29ce484222325;
  for (char each : text)
    number = (number ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return number;
}

/// The types of what a message has: its contents may be anything.
std::string words_of(const caf::type_erased_tuple& message) {
  std::string words;
  for (size_t i = 0; i < message.size(); ++i) {
    const std::type_info* type = message.type(i).second;
    int failed = 0;
    std::unique_ptr<char, void (*)(void*)> name(
        type == nullptr ? nullptr : abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed), std::free);
    words += (i == 0 ? "" : ", ") + (name ? std::string(name.get()) : message.stringify(i));
  }
  return words;
}

/// CAF's printer, for actors that print: a test has no use for that.
caf::behavior ignore_prints(caf::event_based_actor* self) {
  self->set_default_handler(caf::drop);
  return {[](caf::unit_t) {}};
}

} // namespace

actor_delays actor_delays::draw(seeded_random& random) {
  actor_delays delays;
  delays.most = std::chrono::nanoseconds(random.swarm(1'000'000));
  delays.messages_most = 1 + random.below(4);
  delays.differ = random.coin();
  return delays;
}

virtual_clock::time_point virtual_clock::now() const noexcept {
  return time_point{} + clock_at_start + events_.now();
}

void virtual_clock::wake_at(time_point at) {
  events_.after(at - now(), [this] { trigger_expired_timeouts(); });
}

void virtual_clock::set_ordinary_timeout(time_point at, caf::abstract_actor* self, caf::atom_value type,
                                         uint64_t id) {
  super::set_ordinary_timeout(at, self, type, id);
  wake_at(at);
}

void virtual_clock::set_multi_timeout(time_point at, caf::abstract_actor* self, caf::atom_value type,
                                      uint64_t id) {
  super::set_multi_timeout(at, self, type, id);
  wake_at(at);
}

void virtual_clock::set_request_timeout(time_point at, caf::abstract_actor* self, caf::message_id id) {
  super::set_request_timeout(at, self, id);
  wake_at(at);
}

void virtual_clock::schedule_message(time_point at, caf::strong_actor_ptr receiver,
                                     caf::mailbox_element_ptr content) {
  super::schedule_message(at, std::move(receiver), std::move(content));
  wake_at(at);
}

void virtual_clock::schedule_message(time_point at, caf::group target, caf::strong_actor_ptr sender,
                                     caf::message content) {
  super::schedule_message(at, std::move(target), std::move(sender), std::move(content));
  wake_at(at);
}

actor_scheduler::actor_scheduler(caf::actor_system& system, simulation::scheduler& events, uint64_t seed,
                                 actor_delays delays)
    : caf::scheduler::abstract_coordinator(system), events_(events), random_(seed), delays_(delays),
      clock_(events), own_unit_(*this) {}

actor_scheduler::~actor_scheduler() {
  for (const auto& [event, job] : waiting_)
    events_.cancel(event);
}

void actor_scheduler::install(caf::actor_system_config& config, simulation::scheduler& events, uint64_t seed,
                              actor_delays delays) {
  config.set("logger.verbosity", caf::atom("quiet"));
  config.module_factories.push_back(
      [&events, seed, delays](caf::actor_system& system) -> caf::actor_system::module* {
        return new actor_scheduler(system, events, seed, delays);
      });
}

actor_scheduler& actor_scheduler::of(caf::actor_system& system) {
  return static_cast<actor_scheduler&>(system.scheduler());
}

void actor_scheduler::start() { utility_actors_[printer_id] = system().spawn<caf::hidden>(ignore_prints); }

/// The system waits for nobody by now, so this runs what ends.
void actor_scheduler::stop() {
  caf::anon_send_exit(utility_actors_[printer_id], caf::exit_reason::user_shutdown);
  utility_actors_[printer_id] = nullptr;
  while (!waiting_.empty() && events_.step()) {
  }
}

uint64_t actor_scheduler::most_of(caf::resumable* job) const {
  auto most = static_cast<uint64_t>(delays_.most.count());
  auto* actor = delays_.differ ? dynamic_cast<caf::scheduled_actor*>(job) : nullptr;
  if (actor == nullptr)
    return most;
  uint64_t draw = (actor->id() * 0x9e3779b97f4a7c15 ^ most) >> 60;
  return draw < 12 ? 0 : draw < 14 ? most : 10 * most;
}

void actor_scheduler::enqueue(caf::resumable* job) {
  std::chrono::nanoseconds delay(random_.between(0, most_of(job)));
  // The event does not know its own number before it exists.
  auto number = std::make_shared<simulation::scheduler::event_id>();
  *number = events_.after(delay, [this, job, number] {
    waiting_.erase(*number);
    run(job);
  });
  waiting_.emplace(*number, job);
}

void actor_scheduler::run(caf::resumable* job) {
  ++jobs_run_;
  note(job);
  auto* unit = unit_ != nullptr ? unit_ : &own_unit_;
  daemon_heap::turn turn;
  // One message at a time: with more, some actors end their turn by the machine's clock (runtime/turn_times.hpp).
  auto result = job->resume(unit, 1);
  for (auto left = random_.below(delays_.messages_most); left > 0 && result == caf::resumable::resume_later;
       --left)
    result = job->resume(unit, 1);
  switch (result) {
    case caf::resumable::resume_later: enqueue(job); break;
    case caf::resumable::done:
    case caf::resumable::awaiting_message: caf::intrusive_ptr_release(job); break;
    case caf::resumable::shutdown_execution_unit: break;
  }
}

void actor_scheduler::note(caf::resumable* job) {
  auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
  if (actor == nullptr) {
    events_.note({3, static_cast<uint64_t>(job->subtype())});
    return;
  }
  std::string name = actor->name();
  events_.note({4, number_of(name), actor->id()});
  if (!trace_)
    return;
  auto* next = actor->mailbox().peek();
  trace_(events_.now(), name + " " + std::to_string(actor->id()) + ": " +
                            (next == nullptr ? "starts" : words_of(next->content())));
}

} // namespace terrace::simulation
