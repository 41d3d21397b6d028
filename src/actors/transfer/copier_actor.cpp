#include "actors/transfer/copier_actor.hpp"

#include "runtime/answer.hpp"
#include "runtime/thread_priority.hpp"
#include "transfer/copy_queue.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <chrono>

namespace terrace::actors {

namespace {
struct copy_turn {}; ///< to itself
} // namespace

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::copy_turn)

namespace terrace::actors {

namespace {

struct copier_state {
  const char* name = "copier";
  std::unique_ptr<copy_queue> line;
  std::shared_ptr<metrics::copier_probe> probe;
  std::shared_ptr<copier_load> load;
  bool detached = false;
  std::chrono::nanoseconds worked{0}; ///< since others were let run
};

using copier_interface = copier_actor::extend<caf::reacts_to<copy_turn>>;
using copier_pointer = copier_interface::stateful_pointer<copier_state>;

/// After that much work of a copier others may have its processor: less than a slice, 1 MiB, on a fast machine.
constexpr auto others_run_after = std::chrono::microseconds(40);

/// Slices of a request that is alone, before others are received.
constexpr int slices_alone = 2;

void serve_a_slice(copier_state& state) {
  auto begin = std::chrono::steady_clock::now();
  state.line->serve();
  auto took = std::chrono::steady_clock::now() - begin;
  state.probe->worked(took);
  state.worked += took;
  if (state.detached && state.worked >= others_run_after) {
    state.worked = {};
    runtime::let_others_run();
  }
}

/// A slice, or several if nobody waits. Other requests are received before the next one.
void take_turn(copier_pointer self) {
  auto& state = self->state;
  int slices = 0;
  do
    serve_a_slice(state);
  while (state.line->has_one() && ++slices < slices_alone);
  if (!state.line->empty())
    self->send(self, copy_turn{});
}

template <class Answer, class Request>
caf::result<Answer> take(copier_pointer self, Request& request) {
  auto& state = self->state;
  auto reply = make_answer<Answer>(self);
  uint64_t bytes = copy_queue::payload_of(request);
  state.probe->queued(bytes);
  bool turning = !state.line->empty();
  state.line->add(std::move(request), [&state, bytes, reply](Answer value) mutable {
    uint64_t moved = bytes;
    if constexpr (requires { value.bytes; })
      moved = value.bytes;
    state.probe->finished(bytes, moved, value.failure.code == errc::gone);
    if (state.load)
      state.load->ends(); // before whoever is answered asks again
    reply.deliver(std::move(value));
  });
  if (!turning)
    take_turn(self);
  return reply.promise();
}

copier_interface::behavior_type copier_behavior(copier_pointer self, const copier_arguments& with) {
  if (with.detached) { // begins on its own thread
    runtime::be_nice(with.nice);
    runtime::ask_for_slices(with.slice_us); // as long as one of its turns
  }
  self->state.detached = with.detached;
  self->state.line = std::make_unique<copy_queue>(with.piece_bytes);
  self->state.probe = with.probe;
  self->state.load = with.load;
  return {
      [self](copy_request& request) { return take<copy_answer>(self, request); },
      [self](seal_request& request) { return take<seal_answer>(self, request); },
      [self](check_request& request) { return take<check_answer>(self, request); },
      [self](copy_turn) { take_turn(self); },
  };
}

} // namespace

copier_actor spawn_copier(caf::actor_system& system, copier_arguments arguments) {
  if (!arguments.probe)
    arguments.probe = std::make_shared<metrics::copier_probe>();
  if (arguments.detached)
    return system.spawn<caf::detached>(copier_behavior, arguments);
  return system.spawn(copier_behavior, arguments);
}

namespace {
/// With fewer copiers nothing is divided: they have no more processors than the worker and the client that wait for them, and
/// loads in parts were a tenth slower with two (decision 046).
constexpr size_t dividing_copiers = 4;

uint32_t requests_of(const copier_pool::member& one) { return one.load ? one.load->requests() : 0; }
} // namespace

const copier_actor& copier_pool::next() {
  const size_t first = turn_.fetch_add(1, std::memory_order_relaxed), all = members_.size();
  const member* least = &members_[first % all];
  uint32_t requests = requests_of(*least);
  for (size_t i = 1; i < all && requests != 0; ++i) {
    const member& one = members_[(first + i) % all];
    if (uint32_t its = requests_of(one); its < requests) {
      least = &one;
      requests = its;
    }
  }
  if (least->load)
    least->load->begins();
  return least->copier;
}

size_t copier_pool::parts_now(size_t parts_max) const {
  const size_t all = members_.size();
  if (parts_max == 1 || all < dividing_copiers)
    return 1;
  const auto idle = static_cast<size_t>(std::count_if(
      members_.begin(), members_.end(), [](const member& one) { return requests_of(one) == 0; }));
  const size_t most = idle == all ? all : std::min(idle, all / 2);
  return std::clamp<size_t>(parts_max, 1, std::max<size_t>(most, 1));
}

} // namespace terrace::actors
