#include "actors/tier/tier_shell.hpp"

#include "runtime/answer.hpp"
#include "tier/objects/index_recount.hpp"
#include "tier/objects/tier_check.hpp"

#include <cassert>
#include <cstdio>
#include <cstdlib>

namespace terrace::actors {

namespace {

/// Changes of a tier between two slices; 0: the tier is checked on request only. See meson_options.txt.
constexpr uint64_t check_every = TERRACE_CHECK_EVERY;

/// Attempts to ask the allocator about a slice while it makes room.
constexpr int space_attempts = 8;

using told_slice = std::function<void(check_tier_answer)>;

/// A slice that the policy and the allocator compare, both in the state in which they were asked. Their
/// answers keep it.
struct slice_check {
  slice_ptr slice; ///< for the allocator; a new one at each attempt
  check_tier_answer made;
  table_totals::sum granted; ///< granted until the slice was made
  int attempts = 0;          ///< attempts to compare with the allocator
  int awaited = 2;
  told_slice done;

  void add(const std::vector<std::string>& differences) {
    made.differences.insert(made.differences.end(), differences.begin(), differences.end());
  }
};
using slice_check_ptr = std::shared_ptr<slice_check>;

void tell_slice(const slice_check_ptr& check) {
  if (--check->awaited != 0)
    return;
  std::string tier(to_string(check->slice->tier));
  for (std::string& one : check->made.differences)
    one = tier + " tier: " + one;
  check->done(std::move(check->made));
}

void compare_space(tier_pointer self, const slice_check_ptr& check);

/// Returns the allocator's space if a round has it here.
const allocator* lent_space(tier_pointer self) {
  const auto& state = self->state;
  const eviction_round* next = state.next_round.get();
  for (const eviction_round* round : {state.changes.round(), next})
    if (round != nullptr && round->lent() != nullptr)
      return round->lent();
  return nullptr;
}

/// The space is, or was, with the tier. Compares it here, with the objects as they are now.
void compare_lent(tier_pointer self, const slice_check_ptr& check) {
  const allocator* lent = lent_space(self);
  if (lent == nullptr) { // the space is on its way back
    compare_space(self, check);
    return;
  }
  checked_slice now;
  now.tier = check->slice->tier;
  for (checked_object object : check->slice->objects)
    if (const resident* there = self->state.objects().table().get(object.id)) {
      object.place = {there->offset(), there->physical_bytes()};
      now.objects.push_back(object);
    }
  check->add(check_extents(*lent, now));
  tell_slice(check);
}

/// Returns the slice as it is now; earlier comparisons no longer count.
slice_ptr renewed(tier_pointer self, const slice_ptr& before);

void compare_space(tier_pointer self, const slice_check_ptr& check) {
  if (++check->attempts > space_attempts) {
    check->made.not_compared += check->slice->objects.size();
    tell_slice(check);
    return;
  }
  if (check->attempts > 1)
    check->slice = renewed(self, check->slice);
  check->granted = self->state.granted;
  self->request(self->state.space, caf::infinite, check_space_request{check->slice})
      .then(
          [self, check](const check_space_answer& answer) {
            if (answer.lent) {
              compare_lent(self, check);
              return;
            }
            check->add(answer.differences);
            // Extents given out since then arrived before this answer.
            const auto& granted = self->state.granted;
            check->add(check_space_totals(
                answer.usage, *check->slice,
                {granted.objects - check->granted.objects, granted.bytes - check->granted.bytes}));
            tell_slice(check);
          },
          [check](const caf::error&) {
            check->made.failure = {errc::internal, "the tier's allocator has ended"};
            tell_slice(check);
          });
}

/// The policy, like the allocator, is asked in the turn that made the slice.
void compare_policy(tier_pointer self, const slice_check_ptr& check) {
  self->request(self->state.policy, caf::infinite, check_policy_request{check->slice})
      .then(
          [check](const check_answer_texts& answer) {
            check->add(answer.differences);
            tell_slice(check);
          },
          [check](const caf::error&) {
            check->made.failure = {errc::internal, "the eviction policy has ended"};
            tell_slice(check);
          });
}

/// Called once, after the last slice.
void compare_journals(tier_pointer self, const slice_check_ptr& check) {
  ++check->awaited;
  self->request(self->state.keeper, caf::infinite,
                check_journal_request{self->state.objects().recount().for_journals()})
      .then(
          [check](const check_answer_texts& answer) {
            check->add(answer.differences);
            tell_slice(check);
          },
          [check](const caf::error&) {
            check->made.failure = {errc::internal, "the journals of the tier have ended"};
            tell_slice(check);
          });
}

/// Counts all objects and what they have of the arena.
void count_all(tier_pointer self, checked_slice& slice) {
  const table_totals& kept = self->state.objects().table().totals();
  slice.published_in_all = kept.readable;
  slice.extents_in_all = kept.all.objects;
  slice.bytes_in_all = kept.all.bytes;
  if (const auto* round = self->state.changes.round()) {
    slice.extents_in_all += round->freed().size();
    slice.bytes_in_all += bytes_of(round->freed());
  }
}

slice_ptr renewed(tier_pointer self, const slice_ptr& before) {
  auto now = std::make_shared<checked_slice>();
  now->tier = before->tier;
  for (const checked_object& object : before->objects)
    if (self->state.objects().table().get(object.id) != nullptr)
      now->objects.push_back(object); // an object keeps its place
  count_all(self, *now);
  return now;
}

/// When it returns, everything that the policy and the allocator have to know has been sent.
void look_at_slice(tier_pointer self, told_slice done) {
  auto& state = self->state;
  send_kept_notes(self); // earlier turns have sent the rest
  auto check = std::make_shared<slice_check>();
  check->done = std::move(done);
  check->made.walk = state.check.walk;
  auto slice = std::make_shared<checked_slice>();
  slice->tier = state.changes.kind();
  check->made.last = !check_index(state.objects(), *slice, check->made.differences);
  check->made.objects = slice->objects.size();
  for (const checked_object& object : slice->objects)
    if (object.holds != 0)
      check->made.held.push_back(
          {object.id, object.key, object.place.size, object.holds, object.touched || !state.line.empty()});
  if (check->made.last)
    check->add(check_totals(state.objects()));
  count_all(self, *slice);
  check->slice = std::move(slice);
  if (check->made.last && state.keeper)
    compare_journals(self, check);
  compare_policy(self, check);
  compare_space(self, check);
}

void begin_walk(tier_pointer self, bool asked) {
  ++self->state.check.walk;
  self->state.check.asked = asked;
  self->state.objects().recount().begin();
}

} // namespace

caf::result<check_tier_answer> on_check(tier_pointer self, const check_tier_request& request) {
  auto& state = self->state;
  if (request.walk == 0) {
    begin_walk(self, true);
    check_tier_answer begun;
    begun.walk = state.check.walk;
    return begun;
  }
  if (request.walk != state.check.walk || state.objects().recount().walk() == nullptr) {
    check_tier_answer other;
    other.failure = {errc::busy, "another check of the tier has begun"};
    return other;
  }
  auto reply = make_answer<check_tier_answer>(self);
  look_at_slice(self, [reply](check_tier_answer made) mutable { reply.deliver(std::move(made)); });
  return reply.promise();
}

check_held_answer on_check_held(tier_pointer self, const check_held_request& request) {
  const resident_table& table = self->state.objects().table();
  check_held_answer answer;
  answer.releasing = !self->state.line.empty();
  answer.writing_bytes = table.totals().reserved_bytes;
  for (object_id id : request.ids) {
    const resident* object = table.get(id);
    held_object one;
    one.id = id;
    if (object != nullptr) {
      one.key = object->key();
      one.physical_bytes = object->physical_bytes();
      one.holds = object->holds();
    }
    const table_recount* recount = self->state.objects().recount().walk();
    one.touched = recount == nullptr || recount->touched(resident_table::slot_of(id));
    answer.held.push_back(one);
  }
  return answer;
}

void on_end_check(tier_pointer self, const end_check_notice& notice) {
  if (notice.walk == self->state.check.walk)
    self->state.objects().recount().end();
}

// ---- builds that check all the time ----

void check_now_and_then(tier_pointer self) {
  if constexpr (check_every != 0) {
    auto& check = self->state.check;
    if (check.slice_due || ++check.changes < check_every)
      return;
    check.changes = 0;
    check.slice_due = true; // until it is answered, so that at most one is in progress
    self->send(self, check_slice_notice{});
  }
}

void on_check_slice(tier_pointer self) {
  auto& state = self->state;
  assert(state.check.slice_due);
  if (state.objects().recount().walk() != nullptr && state.check.asked) {
    state.check.slice_due = false; // a requested check goes first
    return;
  }
  if (state.objects().recount().walk() == nullptr)
    begin_walk(self, false);
  look_at_slice(self, [self](const check_tier_answer& made) {
    self->state.check.slice_due = false;
    if (made.failure.code == errc::ok && !made.differences.empty()) {
      std::fprintf(stderr, "terraced: a check of the tier found that %s\n", made.differences.front().c_str());
      std::abort();
    }
    if (made.last && !self->state.check.asked)
      self->state.objects().recount().end();
  });
}

} // namespace terrace::actors
