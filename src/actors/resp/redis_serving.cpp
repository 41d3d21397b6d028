// Serves batches of commands, and long values, as coroutines.
#include "actors/resp/redis_connection.hpp"
#include "actors/resp/value_requests.hpp"
#include "base/tier_properties.hpp"
#include "tier/messages.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace terrace::actors {

namespace {

/// Smaller values are copied into the text of the replies, which costs less than an area of their own.
constexpr uint64_t copied_bytes_max = 16 << 10;
/// Parts in which a dropped value is received.
constexpr size_t skipped_part_bytes = 64 << 10;

/// A value in a reply. Its request is in progress until the reply is sent: a check would otherwise miss who holds the value.
struct replied_value {
  context_ptr request; ///< first, to end last
  keep_alive owner;
};

} // namespace

task<> redis_connection::serve(std::shared_ptr<redis_batch> batch) {
  switch (batch->what) {
    case redis_batch::work::read: {
      co_await serve_reads(batch);
      break;
    }
    case redis_batch::work::write: {
      co_await serve_writes(batch);
      break;
    }
    case redis_batch::work::remove: {
      co_await serve_removals(batch);
      break;
    }
    case redis_batch::work::count: {
      co_await serve_counts(batch);
      break;
    }
    case redis_batch::work::none: break; // served at once
  }
  served();
}

/// Replies to items whose outcome is known. `failure`: failure of the item's key.
void redis_connection::reply_item(const item& one, const error& failure) {
  if (failure.code != errc::ok && failure_.code == errc::ok && one.what != item::kind::stored)
    failure_ = failure;
  switch (one.what) {
    case item::kind::text: replies_.text().append(one.text); return;
    case item::kind::stored:
      if (failure.code != errc::ok)
        reply_failure(failure);
      else
        resp::append_simple(replies_.text(), "OK");
      return;
    case item::kind::parts:
    case item::kind::sum:
      if (failure_.code != errc::ok)
        reply_failure(failure_);
      else if (one.what == item::kind::sum)
        resp::append_integer(replies_.text(), sum_);
      else
        resp::append_simple(replies_.text(), "OK");
      [[fallthrough]];
    case item::kind::forget:
      sum_ = 0;
      failure_ = {};
      return;
    default: return;
  }
}

void redis_connection::reply_failure(const error& why) {
  redis_->probe->failed();
  resp::append_failure(replies_.text(), why);
}

/// Waits until earlier replies are sent, so that a client that does not read keeps a bounded number of
/// values.
task<> redis_connection::await_room() {
  while (!replies_.has_room()) {
    send();
    if (replies_.has_room())
      break; // replies that count as sent are not reported
    room_came_ = std::make_unique<task_event>();
    task_event& came = *room_came_;
    co_await came;
  }
}

// ---- reading ----

task<> redis_connection::serve_reads(std::shared_ptr<redis_batch> batch) {
  value_subject of{environment_.group, space_, batch->objects, context_};
  auto found = co_await find_values<self_pointer>(self_, of);
  told_ = 0;
  error failure;
  if (!found)
    failure = found.error();
  for (const item& one : batch->items) {
    bool element = one.what == item::kind::element;
    if (one.what == item::kind::count && found) {
      bool here = found->of(one.key) != nullptr;
      sum_ += here ? 1 : 0;
    } else if (one.what == item::kind::value || element) {
      co_await await_room();
      if (found) {
        co_await reply_value(of, *found, one.key, element);
      } else if (element)
        resp::append_null(replies_.text(), talk_.in());
      else
        reply_failure(failure);
    } else {
      reply_item(one, failure);
    }
  }
}

/// Replies with a value from host memory, into which it is brought from a tier below. In an array, a value
/// that cannot be read is missing.
task<> redis_connection::reply_value(const value_subject& of, const found_values& found, size_t key,
                                     bool element) {
  const tier_hold* from = found.of(key);
  if (from != nullptr && from->tier == memory_tier) {
    add_value(from->held->places()[key], from->held);
    co_return;
  }
  if (from != nullptr) {
    caf::actor load = idle_loads_.take([this] { return spawn_load(self_->system()); });
    const tier_hold& below = *from;
    auto brought = co_await bring_value<self_pointer>(self_, of, key, below, load);
    if (brought && *brought)
      idle_loads_.put_back(load); // one that failed has ended, also where it found that the value is gone
    if (!brought && !element) {
      reply_failure(brought.error());
      co_return;
    }
    if (brought && *brought) {
      add_value((*brought)->place, (*brought)->owner);
      co_return;
    }
  }
  redis_->probe->missed();
  resp::append_null(replies_.text(), talk_.in());
}

void redis_connection::add_value(const object_place& place, keep_alive owner) {
  std::span<const std::byte> bytes(payload_at(*environment_.group->memory, place), place.payload_bytes);
  redis_->probe->found(bytes.size());
  resp::append_value_head(replies_.text(), bytes.size());
  if (bytes.size() <= copied_bytes_max)
    replies_.text().append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  else
    replies_.add_value(bytes, std::make_shared<replied_value>(replied_value{context_, std::move(owner)}));
  replies_.text().append(resp::end_of_value);
}

// ---- writing ----

/// The turn has come, or the request has ended.
void redis_connection::on_turn() {
  auto came = std::move(turn_came_);
  if (came)
    came->set();
}

/// Waits until all who wanted to replace the value before have done so.
task<error> redis_connection::await_turn(const value_subject& of, reserved_values& values) {
  auto work = std::make_shared<std::function<void()>>([this] { on_turn(); });
  auto me = caf::actor_cast<caf::actor_addr>(self_);
  auto told = [me, work] {
    if (auto there = caf::actor_cast<connection_actor>(me))
      caf::anon_send(there, resume_notice{work});
  };
  values.turn = redis_->turns->join(of.objects->keys.front().chunk, told);
  while (!values.turn->has_turn()) {
    if (auto ended = why_ended(of.context, "store"); ended.code != errc::ok)
      co_return ended;
    turn_came_ = std::make_unique<task_event>();
    task_event& came = *turn_came_;
    co_await came;
  }
  co_return error{};
}

/// Reserves places for values. Waits for others that write the same one; returns false if they write some of several.
task<result<bool>> redis_connection::reserve(const value_subject& of, reserved_values& values) {
  const bool one = of.objects->size() == 1;
  if (one && redis_->turns->waited_for(of.objects->keys.front().chunk)) {
    auto ended = co_await await_turn(of, values);
    if (ended.code != errc::ok)
      co_return tl::unexpected(ended);
  }
  while (true) {
    auto reserved = co_await reserve_values<self_pointer>(self_, of, values);
    if (!reserved || *reserved || !one)
      co_return reserved;
    values.credits.clear(); // it holds nothing while it waits
    error ended;
    if (!values.turn) {
      ended = co_await await_turn(of, values);
    }
    if (ended.code == errc::ok) {
      ended = co_await await_writers<self_pointer>(self_, of); // they came before there was a queue
    }
    if (ended.code != errc::ok)
      co_return tl::unexpected(ended);
  }
}

/// Stores values that have been received. Returns false if others are writing some of these keys.
task<result<bool>> redis_connection::store(const value_subject& of,
                                           std::span<const std::string_view> contents) {
  reserved_values values;
  auto reserved = co_await reserve(of, values);
  if (!reserved || !*reserved)
    co_return reserved;
  const segmented_arena& memory = *environment_.group->memory;
  for (size_t i = 0; i < contents.size(); ++i) {
    std::memcpy(payload_at(memory, values.space.places[i]), contents[i].data(), contents[i].size());
    redis_->probe->stored(contents[i].size());
  }
  auto failure = co_await publish_values<self_pointer>(self_, of, values);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  co_return true;
}

task<> redis_connection::serve_writes(std::shared_ptr<redis_batch> batch) {
  const object_batch& all = *batch->objects;
  std::vector<error> failures(all.size());
  value_subject of{environment_.group, space_, batch->objects, context_};
  result<bool> stored = true;
  if (all.size() != 0) {
    std::span<const std::string_view> contents = batch->contents;
    stored = co_await store(of, contents);
  }
  for (size_t i = 0; i < all.size() && (!stored || !*stored); ++i) {
    if (!stored) {
      failures[i] = stored.error();
      continue;
    }
    auto one = std::make_shared<object_batch>();
    one->keys = {all.keys[i]};
    one->parents.resize(1);
    one->payload_bytes = {all.payload_bytes[i]};
    of.objects = one;
    std::span<const std::string_view> content(&batch->contents[i], 1);
    auto alone = co_await store(of, content);
    if (!alone)
      failures[i] = alone.error();
  }
  for (const item& one : batch->items) {
    bool of_key = one.what == item::kind::part || one.what == item::kind::stored;
    reply_item(one, of_key ? failures[one.key] : error{});
  }
}

/// Receives a long value into its place.
task<> redis_connection::serve_value() {
  error failure;
  if (skips_) {
    co_await skip_value();
  } else {
    auto one = std::make_shared<object_batch>();
    one->keys = {key_of(step_->words.back())};
    one->parents.resize(1);
    one->payload_bytes = {step_->value_bytes};
    value_subject of{environment_.group, space_, one, context_};
    reserved_values values;
    auto reserved = co_await reserve(of, values);
    if (!reserved) {
      failure = reserved.error();
      values = {};
      co_await skip_value();
    } else {
      std::byte* at = payload_at(*environment_.group->memory, values.space.places.front());
      std::span<std::byte> left(at, step_->value_bytes);
      auto here = in_->reader.take_value();
      std::memcpy(left.data(), here.data(), here.size());
      left = left.subspan(here.size());
      while (!left.empty()) {
        receive_value(left, values.space.reserved);
        value_came_ = std::make_unique<task_event>();
        task_event& came = *value_came_;
        co_await came;
        left = left.subspan(received_value_);
      }
      begin_context(); // the time that the client took does not count
      of.context = context_;
      failure = co_await publish_values<self_pointer>(self_, of, values);
      redis_->probe->stored(step_->value_bytes);
    }
  }
  if (!skips_)
    reply_item({calling_->command == resp::command::set ? item::kind::stored : item::kind::part}, failure);
  step_.reset();
  served();
}

task<> redis_connection::skip_value() {
  auto nowhere = std::make_shared<std::vector<std::byte>>(skipped_part_bytes);
  (void) in_->reader.take_value();
  while (in_->reader.value_left() != 0) {
    std::span<std::byte> part(*nowhere);
    part = part.first(static_cast<size_t>(std::min<uint64_t>(part.size(), in_->reader.value_left())));
    receive_value(part, nowhere);
    value_came_ = std::make_unique<task_event>();
    task_event& came = *value_came_;
    co_await came;
  }
}

task<> redis_connection::serve_removals(std::shared_ptr<redis_batch> batch) {
  value_subject of{environment_.group, space_, batch->objects, context_};
  std::vector<bool> removed;
  error failure;
  if (batch->objects->size() != 0) {
    failure = co_await remove_values<self_pointer>(self_, of, removed);
  }
  std::vector<bool> counted(batch->objects->size());
  for (const item& one : batch->items) {
    if (one.what == item::kind::count && failure.code == errc::ok) {
      bool first = !counted[one.key];
      sum_ += first && removed[one.key] ? 1 : 0;
      counted[one.key] = true;
    } else {
      reply_item(one, one.what == item::kind::count ? failure : error{});
    }
  }
}

// ---- how many there are ----

task<> redis_connection::serve_counts(std::shared_ptr<redis_batch> batch) {
  uint64_t keys = 0; // most keys are in several tiers
  for (const tier_handle& tier : environment_.group->tiers()) {
    const tier_actor& whom = tier.tier;
    count_objects_request wanted{space_->id};
    auto counted = co_await ask<count_objects_answer>(self_, whom, std::move(wanted), "tier");
    if (counted)
      keys = std::max(keys, counted->objects);
  }
  for (const item& one : batch->items) {
    if (one.what == item::kind::dbsize)
      resp::append_integer(replies_.text(), keys);
    else if (one.what == item::kind::info)
      resp::append_value(replies_.text(), info(keys));
    else
      reply_item(one, {});
  }
}

} // namespace terrace::actors
