#include "actors/tier/tier_shell.hpp"

#include "runtime/answer.hpp"

#include <caf/send.hpp>

namespace terrace::actors {

namespace {

acquire_answer finish_acquire(tier_pointer self, const acquire_request& request,
                              const residency::need& wanted, const std::vector<extent>& granted) {
  auto taken = self->state.objects().acquire(request, wanted, granted);
  acquire_answer answer;
  answer.states = std::move(taken.states);
  answer.places = std::move(taken.places);
  answer.held = std::make_shared<object_hold>(self->state.sink, std::move(taken.held));
  answer.reserved = std::make_shared<object_reservation>(self->state.sink, std::move(taken.reserved));
  answer.held_bytes = self->state.objects().table().totals().held.bytes;
  if (request.replace && taken.replaced != 0)
    self->state.probe->evicted(metrics::eviction_reason::cleared, taken.replaced, taken.replaced_bytes);
  self->state.changes.free(taken.unused);
  return answer;
}

/// Remembers it, for whoever asks for the objects later.
void remember_refusal(tier_pointer self, const acquire_request& request, const residency::need& wanted,
                      refusal_reason why) {
  auto& state = self->state;
  for (size_t i : wanted.objects)
    state.objects().events().add_refusal(to_entry_key(request.objects->keys[i]), state.changes.kind(), why);
}

void count_refusal(tier_pointer self, const acquire_request& request, const error& failure,
                   const residency::need& wanted) {
  const auto& probe = self->state.probe;
  const size_t objects = wanted.objects.size();
  switch (refusal_of(request, failure)) {
    case space_refusal::prefetch: return probe->prefetch_refused(objects);
    case space_refusal::dropped: probe->dropped(objects); break;
    case space_refusal::no_room: probe->refused(refusal_reason::no_room, objects); break;
    case space_refusal::none: return;
  }
  remember_refusal(self, request, wanted, refusal_reason::no_room);
}

/// Counts a refusal because of the tenant's bound.
void count_quota_refusal(tier_pointer self, const acquire_request& request, const error& failure,
                         const quota_charge& charge, const residency::need& wanted) {
  if (refusal_of(request, failure) != space_refusal::no_room) {
    count_refusal(self, request, failure, wanted);
    return;
  }
  self->state.probe->refused(refusal_reason::quota, wanted.objects.size());
  remember_refusal(self, request, wanted, refusal_reason::quota);
  self->state.objects().shares().quotas()->refused(charge.tenant);
}

/// When the allocator has answered, the tenant's booked bytes are charged or given up.
void take_space(tier_pointer self, answer<acquire_answer> reply, const acquire_request& request,
                const residency::need& wanted, const quota_charge& charge) {
  allocate_request space{wanted.sizes, request.may_wait, request.context, charge.tenant};
  self->request(self->state.space, caf::infinite, std::move(space))
      .then(
          [self, reply, request, wanted, charge](const allocate_answer& granted) mutable {
            self->state.granted.objects += granted.extents.size();
            self->state.granted.bytes += bytes_of(granted.extents);
            unbook(self, charge);
            if (granted.failure.code != errc::ok) {
              count_refusal(self, request, granted.failure, wanted);
              reply.fail(granted.failure);
              if (charge.bytes != 0)
                serve_quotas(self);
              return;
            }
            reply.deliver(finish_acquire(self, request, wanted, granted.extents));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the tier's allocator has ended"});
          });
}

} // namespace

caf::result<acquire_answer> on_acquire(tier_pointer self, const acquire_request& request) {
  auto& state = self->state;
  auto wanted = state.objects().missing(request);
  if (wanted.sizes.empty())
    return finish_acquire(self, request, wanted, {});
  auto reply = make_answer<acquire_answer>(self);
  auto promise = reply.promise();
  auto charge = charge_of(self, request, wanted);
  if (charge.tenant == tenant_id{}) {
    take_space(self, reply, request, wanted, charge);
    return promise;
  }
  within_quota(self, charge, request, [self, reply, request, wanted, charge](const error& refused) mutable {
    if (refused.code == errc::ok) {
      take_space(self, reply, request, wanted, charge);
      return;
    }
    count_quota_refusal(self, request, refused, charge, wanted);
    reply.fail(refused);
  });
  return promise;
}

} // namespace terrace::actors
