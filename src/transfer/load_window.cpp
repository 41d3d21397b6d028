#include "transfer/load_window.hpp"

#include "base/tier_properties.hpp"
#include "index/object_header.hpp"
#include "transfer/store_window.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

load_window::load_window(load_plan& load, uint64_t bytes_max, size_t begin)
    : load_(load), waits_(begin == load.begin), whole_(load.whole()),
      part_(load.window_from(begin, bytes_max)), source_(part_.size(), memory_tier), lost_(part_.size()) {}

// ---- a round ----

void load_window::begin_round() {
  first_left_ = gap_ = asked_ = SIZE_MAX;
  claimed_.reset();
  claimed_below_.reset();
  below_round_ = false;
}

bool load_window::begin_below(const tier_index& host, const tiers_below& below) {
  if (!below.reads || !load_.subject.copies())
    return false;
  if (load_.of_lease() ? !load_.subject.leased_below() || load_.leased_in_host(part_)
                       : part_.size() > read_objects_max || !host.surely_lacks(*part_.objects))
    return false;
  begin_round();
  below_round_ = true;
  places_.assign(part_.size(), {});
  if (hold_ptr above = held_in(load_.subject.leased, memory_tier))
    for (size_t i = 0; i < part_.size() && part_.begin + i < above->places().size(); ++i)
      places_[i] = above->places()[part_.begin + i];
  return true;
}

acquire_request load_window::present() {
  begin_round();
  acquire_request request;
  request.objects = part_.objects;
  request.fill = false;
  request.note_access = notes_access();
  request.context = load_.subject.context;
  return request;
}

void load_window::keep(const acquire_answer& acquired) {
  places_.assign(acquired.states.size(), {});
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::held)
      places_[i] = acquired.places[i];
  holds_ = {acquired.held};
}

/// Whether what is held may stay held. Claims its bytes for the connection. True for loads that copy.
bool load_window::may_stay(uint64_t held_bytes, bool any_below) {
  const load_subject& subject = load_.subject;
  if (subject.copies())
    return true;
  if (subject.account) {
    claimed_.emplace(subject.account->claim_for(places_, load_.held_bytes_max()));
    return claimed_->complete();
  }
  if (!any_below || held_bytes <= load_.held_bytes_max())
    return true;
  hold_ptr leased = held_in(subject.leased, memory_tier);
  for (size_t i = 0; i < part_.size(); ++i) // what the lease already holds needs no additional memory
    if (!leased || !leased->places()[part_.begin + i].present())
      return false;
  return true;
}

/// What everybody else holds of host memory.
void load_window::count_others(const acquire_answer& acquired) {
  load_.others_hold = load_.charged() ? load_.leases.bytes() : acquired.held_bytes;
  if (!load_.subject.copies())
    return;
  for (size_t i = 0; i < acquired.states.size(); ++i) // its own objects are in nobody's way for long
    if (acquired.states[i] == acquired_state::held)
      load_.others_hold -= std::min(load_.others_hold, acquired.places[i].physical_bytes);
}

result<load_window::step> load_window::add_present(acquire_answer acquired, const tiers_below& below) {
  keep(acquired);
  count_others(acquired);
  bool others = acquired.any(acquired_state::pending);
  bool complete = !others && !acquired.any(acquired_state::absent);
  bool fits = may_stay(acquired.held_bytes, below.any);
  if ((!complete || !fits) && whole_) { // in smaller windows, from the beginning
    load_.piecewise = true;
    holds_.clear();
    return step::ready;
  }
  if (!fits) {
    load_.full = load_.delivered_some();
    return tl::unexpected(load_.no_room(0));
  }
  if (!complete && !others && below.reads)
    return step::read_below;
  if (!complete && !others)
    lost_.assign(part_.size(), load_.subject.leased_below());
  return after_reading(others);
}

load_window::step load_window::after_reading(bool others) {
  if (others && !late_)
    return step::await;
  cut_at_first_gap();
  return step::ready;
}

/// Limits the window to the objects before the first missing one.
void load_window::cut_at_first_gap() {
  auto gap = std::find_if(places_.begin(), places_.end(), [](const object_place& p) { return !p.present(); });
  usable_ = static_cast<size_t>(gap - places_.begin());
}

bool load_window::release_and_wait() {
  holds_.clear();
  return ++awaited_ <= attempts_max;
}

error load_window::gave_up() const {
  if (!load_.subject.held_by)
    return {};
  return {errc::busy, "other clients kept writing the chunks that this load waits for; try again"};
}

// ---- reading from below ----

std::optional<tier_holds> load_window::leased_below() {
  holds_.clear(); // a waiting request holds nothing
  if (!load_.subject.leased_below())
    return std::nullopt;
  tier_holds below;
  for (const tier_hold& one : load_.subject.leased)
    if (one.tier != memory_tier)
      below.push_back({one.tier, part_of(one.held, part_.begin, part_.end)});
  return below;
}

passage::plan load_window::reading(tier_holds below) const {
  const load_subject& subject = load_.subject;
  passage::plan plan;
  plan.space = subject.space;
  plan.objects = part_.objects;
  plan.from = std::move(below);
  plan.way = direction::into_host;
  plan.memory = &load_.memory;
  plan.context = subject.context;
  plan.name = "load";
  plan.inference = subject.context ? subject.context->inference : 0;
  plan.hold = true;
  plan.read_by = subject.read_by;
  return plan;
}

/// What is behind the first object that no tier has, and its chunk, would be read in vain.
void load_window::find_gap(const passage& pass) {
  gap_ = 0;
  while (gap_ < part_.size() && (places_[gap_].present() || pass.has(gap_)))
    ++gap_;
  asked_ = gap_ - gap_ % load_.subject.objects_per_chunk;
}

result<acquire_request> load_window::space(const passage& pass) {
  const load_subject& subject = load_.subject;
  acquire_request request;
  request.objects = part_.objects;
  request.note_access = below_round_ && notes_access();
  request.context = subject.context;
  request.may_fill.resize(part_.size());
  uint64_t wanted = 0;
  find_gap(pass);
  for (size_t i = 0; i < asked_; ++i) {
    request.may_fill[i] = pass.has(i);
    if (pass.has(i) && !places_[i].present())
      wanted += physical_bytes_for(part_.objects->payload_bytes[i]);
  }
  request.may_wait = waits_;
  request.may_come_again = !waits_ || part_.size() > subject.objects_per_chunk;
  if (subject.copies())
    return request;
  request.may_wait = !load_.delivered_some();                           // a waiting request holds nothing
  request.may_come_again = request.may_come_again || !request.may_wait; // what it has is the answer then
  if (subject.account)
    claimed_below_.emplace(subject.account->claim_for(wanted, load_.held_bytes_max()));
  bool fits =
      claimed_below_ ? claimed_below_->complete() : load_.others_hold + wanted <= load_.held_bytes_max();
  if (!fits) {
    load_.full = load_.delivered_some();
    return tl::unexpected(load_.no_room(wanted));
  }
  return request;
}

void load_window::refused_space(const error& why) {
  load_.full = !load_.subject.copies() && load_.delivered_some() && why.code == errc::no_space;
}

bool load_window::publishes(const passage& pass) {
  if (below_round_)
    count_others(pass.acquired());
  return pass.others_write() || !load_.passes();
}

void load_window::add_read(const passage& pass) {
  keep(pass.acquired());
  if (pass.first_left() < asked_)
    first_left_ = std::min(first_left_, pass.first_left());
  for (size_t i : pass.ended().lost)
    lost_[i] = true;
  late_ = late_ || pass.ended().late;
  for (const passage::part& part : pass.parts())
    for (size_t i : part.objects)
      source_[i] = part.tier;
  const auto read = pass.objects();
  if (read.empty())
    return;
  if (!pass.published()) {
    for (size_t i : read)
      places_[i] = pass.acquired().places[i];
    passing_ = pass.acquired().reserved;
    return;
  }
  auto place = pass.published()->places().begin();
  for (size_t i : read) {
    places_[i] = *place++;
    load_.promoted += physical_bytes_for(places_[i].payload_bytes);
  }
  holds_.push_back(pass.published());
}

// ---- delivery ----

load_window::next load_window::after_rounds(error& failure) {
  const load_subject& subject = load_.subject;
  if (!load_.whole() && may_shrink(part_, subject.objects_per_chunk, subject.context, failure)) {
    ++load_.fruitless; // less may fit
    load_.full = false;
    return next::again;
  }
  if (load_.full) { // what is held already is the answer: the client continues after it
    failure = {};
    return next::end;
  }
  if (failure.code != errc::ok)
    return next::end;
  return whole_ && load_.piecewise ? next::again : next::deliver;
}

copy_request load_window::begin_copy() const {
  const load_subject& subject = load_.subject;
  copy_request request;
  request.direction = copy_direction::out_of_arena;
  request.outside = subject.target;
  request.context = subject.context;
  request.owners.assign(holds_.begin(), holds_.end());
  request.owners.push_back(passing_);
  request.runs = subject.runs;
  request.arrived.counters = subject.arrivals;
  request.arrived.chunks = static_cast<uint32_t>(deliverable() / subject.objects_per_chunk);
  return request;
}

/// If they are the load's last chunks, all of the pools have arrived with them.
device_generations load_window::generations(size_t first, size_t count) const {
  const load_subject& subject = load_.subject;
  size_t end = subject.order ? subject.order.end_of_pool(part_.begin) : subject.objects->size();
  bool last = part_.begin + deliverable() == end;
  return last && subject.generations.page ? subject.generations.part(first, count) : device_generations{};
}

copied_object load_window::copied(size_t object) const {
  const object_place& place = places_[object];
  return {.inside = payload_at(load_.memory, place),
          .number = load_.subject.order.number_of(part_.begin + object),
          .bytes = place.payload_bytes};
}

copy_request load_window::copy() const {
  copy_request request = begin_copy();
  const layer_order& order = load_.subject.order;
  request.arrived.first = order ? order.pool_of(part_.begin) : 0;
  request.arrived.count = load_.subject.objects_per_chunk;
  request.generations = generations(request.arrived.first, request.arrived.count);
  for (size_t i = 0; i < usable_; ++i)
    request.objects.push_back(copied(i));
  return request;
}

copy_request load_window::copy_pool(size_t pool) const {
  copy_request request = begin_copy();
  request.arrived.first = pool;
  request.arrived.count = 1;
  request.generations = generations(pool, 1);
  for (size_t i = pool; i < usable_; i += load_.subject.objects_per_chunk)
    request.objects.push_back(copied(i));
  return request;
}

std::array<uint64_t, tier_kinds> load_window::deliver() {
  const load_subject& subject = load_.subject;
  load_result& done = load_.done;
  size_t objects = deliverable();
  std::array<uint64_t, tier_kinds> by_tier{};
  for (size_t i = 0; i < objects; ++i) {
    uint64_t bytes = part_.objects->payload_bytes[i];
    by_tier[static_cast<size_t>(source_[i])] += bytes;
    done.bytes_by_tier[static_cast<size_t>(source_[i])] += bytes;
    done.bytes += bytes;
  }
  done.chunks += objects / subject.objects_per_chunk;
  if (!subject.copies() && objects != 0) {
    done.places->reserve(subject.objects->size()); // so that it is never moved
    done.places->insert(done.places->end(), places_.begin(),
                        places_.begin() + static_cast<ptrdiff_t>(objects));
    for (const hold_ptr& each : holds_)
      done.holds.push_back(subject.account ? subject.account->charge(each) : each);
  }
  load_.begin += objects;
  return by_tier;
}

hold_ptr load_window::from_host() const {
  bool any = std::find(source_.begin(), source_.end(), memory_tier) != source_.end();
  return any && !holds_.empty() ? holds_.front() : nullptr;
}

/// True if the lease of the load held the object.
bool load_window::leased(size_t object) const {
  const tier_holds& leased = load_.subject.leased;
  return std::any_of(leased.begin(), leased.end(), [&](const tier_hold& one) {
    return one.held->places()[part_.begin + object].present();
  });
}

std::optional<error> load_window::after_delivery() {
  size_t objects = deliverable();
  if (objects == part_.size()) {
    load_.fruitless -= load_.fruitless == 0 ? 0 : 1; // more may fit again
    return std::nullopt;
  }
  if (late_) {
    load_.done.late = true;
    return error{};
  }
  if (usable_ != first_left_) { // a tier lost the next object, or no tier ever had it
    if (usable_ == part_.size())
      return error{};
    size_t absent = usable_ < asked_ ? usable_ : gap_;
    if (!lost_[absent] && leased(absent))
      return error{errc::gone, "chunks that the lease held were cleared"};
    load_.done.missing = load_.subject.order.number_of(part_.begin + absent);
    load_.done.damaged = lost_[absent];
    return error{};
  }
  load_.fruitless = objects == 0 ? load_.fruitless + 1 : 0;
  if (load_.fruitless > fruitless_max)
    return error{errc::busy, "objects are evicted from host memory as fast as they are read; try again"};
  return std::nullopt;
}

} // namespace terrace
