// Lookups ask a remote store for objects: those that it has join the tier's index, and those that are gone leave it.
#include "actors/remote/remote_store.hpp"

#include "actors/resp/value_transfer.hpp"
#include "runtime/ask.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::actors {

using remote::belief;
using remote::command_result;

namespace {

auto presence_now() { return std::chrono::steady_clock::now(); }

struct part_of_batch {
  std::shared_ptr<object_batch> objects = std::make_shared<object_batch>();
  void add(const object_batch& from, size_t i) {
    objects->keys.push_back(from.keys[i]);
    objects->parents.push_back(from.parents[i]);
    objects->payload_bytes.push_back(from.payload_bytes[i]);
    objects->trailing = from.trailing;
  }
};

} // namespace

remote::remote_identity remote_store::identity_of(const space_state& space, const object_key& key) const {
  return named({.space = space.name,
                .epoch = epoch_of(space),
                .pool = key.pool,
                .rank = key.rank,
                .chunk = key.chunk});
}

/// As keys and headers name the object: encrypted values do not tell its digest.
remote::remote_identity remote_store::named(remote::remote_identity object) const {
  if (cipher_) {
    object.chunk = cipher_->name_of(object.chunk);
    object.digest_width = remote::value_cipher::name_bytes;
  }
  return object;
}

// ---- the time of a lookup ----

std::shared_ptr<remote_store::budget> remote_store::begin_budget() {
  auto made = std::make_shared<budget>();
  made->until = presence_now() + with_.plan.lookup_budget;
  budgets_.push_back(made);
  if (!std::exchange(timing_, true))
    after(with_.plan.lookup_budget, budget_timer);
  return made;
}

void remote_store::on_budget() {
  timing_ = false;
  const auto now = presence_now();
  while (!budgets_.empty()) {
    auto first = budgets_.front().lock();
    if (first && first->until > now) {
      timing_ = true;
      return after(first->until - now, budget_timer);
    }
    budgets_.pop_front();
    if (!first)
      continue;
    first->over = true;
    if (auto waits = first->now)
      waits->end();
  }
}

// ---- asking ----

belief remote_store::beliefs::now_of(size_t object) const {
  return removed[object] ? belief::absent : of[object];
}

std::optional<size_t> remote_store::beliefs::first_missing() const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (const belief what = now_of(i); what == belief::absent || what == belief::failed)
      return i;
  return std::nullopt;
}

/// A chunk is there if all its objects are, and unknown if it may be.
std::vector<belief> remote_store::of_chunks(const beliefs& objects, size_t each) {
  std::vector<belief> all;
  for (size_t first = 0; first < objects.keys.size(); first += each) {
    belief chunk = belief::present;
    for (size_t i = first; i < first + each; ++i)
      if (const belief what = objects.now_of(i); what != belief::present)
        chunk = chunk == belief::absent || what != belief::unknown ? belief::absent : belief::unknown;
    all.push_back(chunk);
  }
  return all;
}

std::shared_ptr<remote_store::beliefs> remote_store::believed(const space_state& space,
                                                              const object_batch& objects) {
  auto what = std::make_shared<beliefs>();
  what->keys.reserve(objects.size());
  for (const object_key& key : objects.keys)
    what->keys.push_back(with_.plan.names.key_of(identity_of(space, key)));
  what->of = book_.of(what->keys, presence_now());
  what->epoch = epoch_of(space);
  what->removed.resize(objects.size());
  std::erase_if(asked_about_, [](const auto& each) { return each.expired(); });
  asked_about_.push_back(what);
  return what;
}

/// What is asked about some objects, possibly of several nodes.
struct remote_store::probing : waiting {
  std::shared_ptr<beliefs> what;
  size_t left = 1; ///< replies that are waited for, and whoever asks
  void one_less() {
    if (--left == 0)
      end();
  }
};

/// Asks the store for what is unknown, all nodes at once. Null: nothing is, or nobody can be asked.
std::shared_ptr<remote_store::waiting> remote_store::ask_unknown(const std::shared_ptr<beliefs>& what,
                                                                 const object_batch& objects) {
  std::map<uint64_t, std::vector<std::pair<size_t, uint32_t>>> of_nodes; // an object, and its number of parts
  bool of_nobody = false;
  for (size_t i = 0; i < objects.size(); ++i)
    if (what->of[i] != belief::unknown)
      with_.counts->known();
    else if (const node* at = node_of(what->keys[i]); at != nullptr && at->ready())
      of_nodes[at->number].emplace_back(i, remote::parts_of(objects.payload_bytes[i], bytes_of_each()));
    else if (in_cluster()) {
      what->of[i] = belief::absent; // until another node has its slot
      of_nobody |= at == nullptr;
    }
  if (of_nobody)
    doubt_map();
  if (of_nodes.empty())
    return nullptr;
  auto all = std::make_shared<probing>();
  all->what = what;
  for (const auto& [at, unknown] : of_nodes)
    for (size_t begin = 0; begin < unknown.size(); begin += slice_objects) {
      const size_t end = std::min(unknown.size(), begin + slice_objects);
      ask_node(
          *nodes_.at(at), all,
          {unknown.begin() + static_cast<ptrdiff_t>(begin), unknown.begin() + static_cast<ptrdiff_t>(end)},
          false, 0);
    }
  all->one_less();
  pump();
  return all;
}

namespace {

void ask_for(std::span<const std::string> first_keys, std::span<const std::pair<size_t, uint32_t>> objects,
             remote::store_commands& server) {
  for (auto [object, parts] : objects) {
    const std::string& first = first_keys[object];
    if (parts == 1) {
      server.exists(0, first);
      continue;
    }
    std::vector<std::string> keys{first};
    for (uint32_t part = 1; part < parts; ++part)
      keys.push_back(remote::realm::key_of_part(first, part));
    std::vector<std::string_view> texts(keys.begin(), keys.end());
    server.exists(0, texts);
  }
}

} // namespace

/// An object that the node does not have any more is asked for where it says.
void remote_store::ask_node(node& at, const std::shared_ptr<probing>& all,
                            std::vector<std::pair<size_t, uint32_t>> objects, bool asking, uint32_t hops) {
  ++all->left;
  auto asked = std::make_shared<const std::vector<std::pair<size_t, uint32_t>>>(std::move(objects));
  ask_store(
      at, [all, asked](remote::store_commands& server) { ask_for(all->what->keys, *asked, server); },
      [this, &at, all, asked, hops, next = size_t{0},
       now = time_point{}](const remote::finished_command* told) mutable {
        if (next == 0)
          now = presence_now();
        if (told != nullptr) {
          const auto object = (*asked)[next++];
          if (node* other = redirected(at, *told, hops); other != nullptr) {
            ask_node(*other, all, {object}, told->redirected->once, hops + 1);
            pump(*other);
          } else {
            note_presence(*all->what, object.first, *told, now);
          }
        }
        if (told == nullptr || next == asked->size())
          all->one_less();
      },
      asked->size(), asking);
}

void remote_store::note_presence(beliefs& what, size_t object, const remote::finished_command& told,
                                 time_point now) {
  if (told.result == command_result::done || told.result == command_result::absent) {
    const bool present = told.result == command_result::done;
    what.of[object] = present ? belief::present : belief::absent;
    if (what.removed[object])
      book_.forget(what.keys[object]);
    else if (present)
      book_.is_present(what.keys[object], now);
    else
      book_.is_absent(what.keys[object], now);
  }
  with_.counts->asked(told.result == command_result::done);
}

void remote_store::take_invalidated(node& from) {
  if (from.questions_link->server() == nullptr)
    return;
  auto changed = from.questions_link->server()->take_invalidated();
  if (!changed.all && changed.keys.empty())
    return;
  if (changed.all)
    book_.forget_all();
  // Tokens are learnt at once, because a clear holds for the other tiers as well.
  auto tell = [&](token_state& of, const space_state_ptr& space) {
    if (changed.all ? node_of(of.key) != &from && of.read_at != from.number
                    : std::find(changed.keys.begin(), changed.keys.end(), of.key) == changed.keys.end())
      return;
    of.token.ask_again();
    if (serving())
      prepare(space);
  };
  tell(realm_, nullptr);
  for (const auto& [id, space] : spaces_)
    tell(space->epoch, space);
  for (std::string_view key : changed.keys) {
    book_.forget(key);
    if (auto part = key.rfind("/p"); part != std::string_view::npos)
      book_.forget(key.substr(0, part));
  }
}

// ---- removals ----

/// The store answers questions that are under way as it was before the removal: their lookups do not find these objects, and their writes fail.
void remote_store::doubt(const std::unordered_set<std::string>& removed) {
  for (const auto& each : asked_about_)
    if (auto what = each.lock())
      for (size_t i = 0; i < what->keys.size(); ++i)
        what->removed[i] = what->removed[i] || removed.contains(what->keys[i]);
  for (const std::string& key : removed)
    book_.forget(key);
}

caf::result<remove_values_answer> remote_store::on_remove_values(const remove_values_request& request) {
  assert(request.objects->size() <= remove_values_request::objects_max);
  auto reply = make_answer<remove_values_answer>(self_);
  auto promise = reply.promise();
  const uint64_t number = next_task_++;
  run(remove_values(request, std::move(reply), number), number);
  pump();
  return promise;
}

/// Removals wait behind writes, so what was being written is removed as well. Values of Redis clients leave the store with the index.
task<> remote_store::remove_values(remove_values_request request, answer<remove_values_answer> reply,
                                   uint64_t number) {
  remove_values_answer told;
  auto space = space_of(request.space->id, request.space->fingerprint.bytes,
                        resp::is_value_space(request.space->spec));
  auto learnt = co_await learn_space(space, nullptr);
  if (!learnt) {
    told.failure = {errc::busy, with_.service->reason()};
  } else if (!space->own) {
    const object_batch& objects = *request.objects;
    auto removed = std::make_shared<removal>();
    std::unordered_set<std::string> keys;
    for (const object_key& key : objects.keys)
      keys.insert(with_.plan.names.key_of(identity_of(*space, key)));
    doubt(keys);
    for (size_t i = 0; i < objects.size(); ++i)
      remove(identity_of(*space, objects.keys[i]), false, objects.payload_bytes[i], removed);
    removed->one_less();
    pump();
    task_event& done = removed->done;
    co_await done;
    doubt(keys); // what was asked meanwhile
    told.failure = removed->failure;
  }
  if (told.failure.code == errc::internal)
    told.failure.code = errc::busy; // the store refuses for a reason that is not known here
  if (told.failure.code != errc::ok)
    told.failure.text =
        "the remote store may still have objects that were to be evicted: " + told.failure.text;
  reply.deliver(std::move(told));
  ended(number);
}

// ---- lookups ----

caf::result<find_answer> remote_store::on_find(const find_request& request) {
  auto reply = make_answer<find_answer>(self_);
  auto promise = reply.promise();
  const uint64_t number = next_task_++;
  run(find(request, std::move(reply), number), number);
  pump();
  return promise;
}

task<> remote_store::find(find_request request, answer<find_answer> reply, uint64_t number) {
  find_answer found;
  auto space = space_of(request.space->id, request.space->fingerprint.bytes,
                        resp::is_value_space(request.space->spec));
  auto limit = begin_budget();
  if (!space->own && is_bucket() && !has_trailing_pools(request.space->spec)) {
    found.changed = co_await probe_prefix(request, space, limit);
  } else if (!space->own) {
    found.changed = co_await find_slices(request, space, limit);
  }
  if (limit->over)
    with_.counts->late();
  reply.deliver(std::move(found));
  ended(number);
}

/// Asks for what the book does not know. Null: nobody can be asked, or the time is over.
task<std::shared_ptr<remote_store::beliefs>> remote_store::ask_about(space_state_ptr space, batch_ptr objects,
                                                                     std::shared_ptr<budget> limit) {
  while (true) {
    auto learnt = co_await learn_space(space, limit);
    if (!learnt)
      co_return nullptr;
    auto known = believed(*space, *objects);
    limit->now = ask_unknown(known, *objects);
    if (limit->now) {
      task_event& done = limit->now->done;
      co_await done;
    }
    auto still = co_await learn_space(space, limit);
    if (!still)
      co_return nullptr;
    if (epoch_of(*space) == known->epoch)
      co_return known;
    // The store was asked for keys of another epoch.
  }
}

/// Slice by slice, until one has nothing. Returns true if the index has changed.
task<bool> remote_store::find_slices(find_request request, space_state_ptr space,
                                     std::shared_ptr<budget> limit) {
  bool changed = false, goes_on = true;
  size_t slice_max = is_bucket() ? first_slice_of_bucket : slice_objects;
  for (size_t next = request.first; goes_on && next < request.objects.size() && !limit->over;) {
    batch_ptr slice = request.objects.whole(next, slice_max);
    auto known = co_await ask_about(space, slice, limit);
    if (!known)
      break;
    part_of_batch there, absent;
    for (size_t i = 0; i < slice->size(); ++i)
      if (known->now_of(i) == belief::present)
        there.add(*slice, i);
      else if (known->now_of(i) != belief::unknown)
        absent.add(*slice, i);
    batch_ptr present = std::move(there.objects), gone = std::move(absent.objects);
    goes_on = present->size() != 0;
    auto adopted = co_await adopt(request, space, known->epoch, std::move(present));
    auto removed = co_await drop(std::move(gone));
    changed = changed || adopted || removed;
    next += slice->size();
    slice_max = std::min(2 * slice_max, slice_objects);
  }
  co_return changed;
}

/// Asks a bucket, where each question is a request. What is before a chunk that is there joins the index as well, up to what the book knows to
/// be missing; what is behind that leaves it, and is not asked for again before it is written soon. Returns true if the index has changed.
task<bool> remote_store::probe_prefix(find_request request, space_state_ptr space,
                                      std::shared_ptr<budget> limit) {
  const size_t each = chunk_layout(request.space->spec).objects_per_chunk();
  const size_t chunks = (request.objects.size() - request.first) / each;
  remote::prefix_probe plan(chunks);
  std::shared_ptr<beliefs> known;
  bool changed = false;
  size_t next = request.first; // to join the index
  for (auto asked = plan.next(); !asked.empty() && !limit->over; asked = plan.next()) {
    part_of_batch some;
    for (size_t chunk : asked) {
      const batch_ptr one = request.objects.whole(request.first + chunk * each, each);
      for (size_t i = 0; i < one->size(); ++i)
        some.add(*one, i);
    }
    batch_ptr objects = std::move(some.objects);
    known = co_await ask_about(space, objects, limit);
    if (!known)
      co_return changed;
    plan.answered(of_chunks(*known, each));
    for (size_t end = request.first + plan.found() * each; next < end;) {
      batch_ptr slice = request.objects.whole(next, std::min(end - next, slice_objects));
      const auto believes = believed(*space, *slice);
      if (const auto missing = believes->first_missing()) {
        plan.is_missing((next - request.first + *missing) / each);
        end = request.first + plan.found() * each;
        continue;
      }
      next += slice->size();
      auto adopted = co_await adopt(request, space, known->epoch, std::move(slice));
      changed = changed || adopted;
    }
  }
  if (known && plan.found() == plan.missing() && plan.missing() != chunks) {
    batch_ptr gone = request.objects.whole(request.first + plan.missing() * each, slice_objects);
    const auto behind = believed(*space, *gone);
    for (size_t i = 0; i < gone->size(); ++i)
      if (behind->epoch == known->epoch && behind->of[i] == belief::unknown)
        book_.is_absent(behind->keys[i], presence_now());
    auto removed = co_await drop(std::move(gone));
    changed = changed || removed;
  }
  co_return changed;
}

/// Precondition: the tier has joined, as it has before anybody asks.
const tier_index& remote_store::index_of(const trust_group& group) const {
  return *group.tier(with_.plan.tier.kind)->index;
}

/// Objects that others have written join the index, unless their token is lost meanwhile. Returns true if there were any.
task<bool> remote_store::adopt(find_request request, space_state_ptr space, uint64_t epoch,
                               batch_ptr present) {
  auto group = with_.group.lock();
  assert(present->size() <= slice_objects);
  if (!group || present->size() == 0)
    co_return false;
  auto known = index_of(*group).try_probe(present->keys);
  if (known && known->count() == present->size())
    co_return false;
  acquire_request wanted;
  wanted.objects = present;
  wanted.may_wait = false;
  wanted.note_access = false;
  auto acquired = co_await ask<acquire_answer>(self_, tier_, std::move(wanted), "remote tier");
  if (!acquired || acquired->failure.code != errc::ok || !acquired->any(acquired_state::reserved) ||
      epoch_of(*space) != epoch)
    co_return false;
  publish_request complete;
  complete.space = request.space;
  for (size_t i = 0; i < present->size(); ++i)
    if (acquired->states[i] == acquired_state::reserved)
      complete.places.push_back(acquired->places[i]);
  auto published = co_await ask<publish_answer>(self_, tier_, std::move(complete), "remote tier");
  if (published)
    acquired->reserved->note_published(published->published);
  co_return published.has_value();
}

/// Objects that have left the store leave the index. Returns true if there were any.
task<bool> remote_store::drop(batch_ptr gone) {
  auto group = with_.group.lock();
  if (!group || gone->size() == 0)
    co_return false;
  auto known = index_of(*group).try_probe(gone->keys);
  if (known && known->count() == 0)
    co_return false;
  remove_request wanted{gone, false};
  auto removed = co_await ask<remove_answer>(self_, tier_, std::move(wanted), "remote tier");
  co_return removed.has_value();
}

} // namespace terrace::actors
