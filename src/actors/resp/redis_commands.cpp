// Turns the words of a client into batches of commands.
#include "actors/resp/redis_connection.hpp"
#include "actors/resp/value_transfer.hpp"
#include "connection/client_directory.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

using step_kind = resp::reader_step::kind;
using resp::command;

constexpr std::string_view set_usage =
    "expected SET key value: this server has no expiry, and no other option of SET";

} // namespace

object_key redis_connection::key_of(std::string_view key) {
  object_key made;
  made.space = space_->id;
  made.chunk = resp::name_of(hasher_, key);
  return made;
}

/// Takes the next step, unless one is in progress. Returns false if nothing has come, or if nothing more is
/// understood.
bool redis_connection::take_step() {
  if (step_)
    return true;
  if (violation_)
    return false;
  auto next = in_->reader.next();
  if (!next) {
    violation_ = next.error();
    return false;
  }
  if (next->what == step_kind::more)
    return false;
  step_ = *next;
  next_word_ = 0;
  begun_ = false;
  return true;
}

void redis_connection::collect(redis_batch& into) {
  while (!ends_ && !guessed_ && take_step() && collect_step(into)) {
  }
}

/// Returns false if the rest of the step belongs to another batch or to `serve_value`.
bool redis_connection::collect_step(redis_batch& into) {
  if (!begun_) {
    if (!into.has_room())
      return false;
    if (!step_->continued && !begin_command(into))
      return false;
    begun_ = true;
    next_word_ = step_->continued ? 0 : 1;
  }
  if (step_is_value() && !skips_ && !serves_value())
    refuse_call(into, "a word of " + std::to_string(step_->value_bytes) + " bytes: expected at most " +
                          std::to_string(resp::reader_limits{}.word_bytes_max) +
                          ", except for the values of SET and MSET");
  if (skips_)
    return !step_is_value() && end_step();
  return collect_call(into);
}

void redis_connection::refuse_call(redis_batch& into, const std::string& why) {
  std::string text;
  resp::append_error(text, "ERR", why);
  into.items.push_back({item::kind::forget}); // drops the results of its earlier parts
  into.say(text);
  redis_->probe->failed();
  skips_ = true;
}

/// The step is over, and so is its command, unless a long word follows.
bool redis_connection::end_step() {
  step_.reset();
  skips_ = false;
  return true;
}

/// A client counts from its first command on.
bool redis_connection::admit(redis_batch& into) {
  if (admitted_ || !talk_.admitted())
    return true;
  admitted_ = true;
  const auto& limits = environment_.limits;
  auto leaves = environment_.clients->admit(record_->id, false, {limits.connections_max, limits.groups});
  if (leaves)
    return true;
  environment_.client_probe->refused(metrics::refusal::connections_max);
  refuse_call(into, "max number of clients reached: " + leaves.error().text);
  ends_ = true;
  return false;
}

/// Returns false if the command has to be the first of a batch.
bool redis_connection::begin_command(redis_batch& into) {
  std::string_view called = step_->words.empty() ? "" : step_->words.front();
  calling_ = resp::find_command(called);
  if (calling_ != nullptr && calling_->command == command::hello && !into.empty())
    return false; // earlier replies use the former version
  ++record_->requests;
  ++record_->answered;
  redis_->probe->called(calling_ == nullptr ? command::unknown : calling_->command);
  if (!admit(into))
    return true;
  size_t words = step_->words.size() + (step_is_value() ? 1 + step_->words_left : 0);
  std::string refusal;
  if (!talk_.may_call(calling_, called, words, refusal)) {
    into.say(refusal);
    redis_->probe->failed();
    skips_ = true;
  } else if (calling_->command == command::set && words > 3) {
    refuse_call(into, std::string(set_usage));
  } else if (calling_->writes && environment_.group->will_join()) {
    std::string text;
    resp::append_error(text, "LOADING",
                       "the disk tier is being opened: values are stored and removed once it has been");
    into.say(text);
    skips_ = true;
  } else if (calling_->command == command::mget) {
    std::string head;
    resp::append_array_head(head, words - 1);
    into.say(head);
  }
  return true;
}

bool redis_connection::collect_call(redis_batch& into) {
  auto words = step_->words;
  switch (calling_->command) {
    case command::get: return collect_keys(into, redis_batch::work::read, item::kind::value);
    case command::mget: return collect_keys(into, redis_batch::work::read, item::kind::element);
    case command::exists: return collect_keys(into, redis_batch::work::read, item::kind::count);
    case command::del:
    case command::unlink: return collect_keys(into, redis_batch::work::remove, item::kind::count);
    case command::set:
    case command::mset: return collect_pairs(into);
    case command::dbsize:
    case command::info:
      if (!into.takes(redis_batch::work::count))
        return false;
      into.what = redis_batch::work::count;
      into.items.push_back({calling_->command == command::info ? item::kind::info : item::kind::dbsize});
      return end_step();
    default: {
      std::string reply;
      const uint64_t wrong_before = talk_.wrong_passwords();
      talk_.serve(calling_->command, words, reply, nullptr);
      into.say(reply);
      if (talk_.wrong_passwords() != wrong_before)
        on_guess();
      if (talk_.admitted())
        due_[for_admission] = clock::time_point::max(); // whatever it does next, it may take its time
      if (calling_->command == command::client || calling_->command == command::hello)
        record_->set_name(talk_.name().empty() ? "resp" : talk_.name());
      ends_ = ends_ || talk_.leaves();
      return end_step();
    }
  }
}

bool redis_connection::collect_keys(redis_batch& into, redis_batch::work work, item::kind as) {
  for (; next_word_ < step_->words.size(); ++next_word_) {
    if (!into.takes(work))
      return false;
    into.items.push_back({as, into.add(work, key_of(step_->words[next_word_]))});
  }
  if (as == item::kind::count) {
    into.what = work;
    into.items.push_back({item::kind::sum});
  }
  return end_step();
}

bool redis_connection::serves_value() const {
  size_t words =
      step_->words.size() + (step_->continued ? 1 : 0); // a value follows if the last of them is a key
  return calling_ != nullptr && ((calling_->command == command::set && !step_->continued && words == 2) ||
                                 (calling_->command == command::mset && words % 2 == 0));
}

/// Collects the pairs of SET and MSET, up to a long value.
bool redis_connection::collect_pairs(redis_batch& into) {
  size_t end = step_->words.size() - (step_is_value() ? 1 : 0);
  bool one = calling_->command == command::set;
  for (; next_word_ < end; next_word_ += 2) {
    if (!into.takes(redis_batch::work::write))
      return false;
    size_t key = into.add(redis_batch::work::write, key_of(step_->words[next_word_]));
    into.set(key, step_->words[next_word_ + 1]);
    into.items.push_back({one ? item::kind::stored : item::kind::part, key});
  }
  if (step_is_value())
    return false;
  if (!one) {
    into.what = redis_batch::work::write;
    into.items.push_back({item::kind::parts});
  }
  return end_step();
}

std::string redis_connection::info(uint64_t keys) const {
  auto number = [](uint64_t value) { return std::to_string(value); };
  auto uptime = std::chrono::duration_cast<std::chrono::seconds>(environment_.now() - environment_.started);
  const auto& group = *environment_.group;
  std::string text =
      "# Server\r\nredis_version:7.0.0\r\nserver_name:terrace\r\nterrace_version:" TERRACE_VERSION
      "\r\nredis_mode:standalone\r\ntcp_port:0\r\nuptime_in_seconds:" +
      number(static_cast<uint64_t>(uptime.count()));
  text += "\r\n\r\n# Clients\r\nconnected_clients:" + number(environment_.clients->count(standing::client));
  text += "\r\nmaxclients:" + number(environment_.limits.connections_max);
  text += "\r\n\r\n# Memory\r\nmaxmemory:" + number(group.memory->size());
  text += "\r\nmaxmemory_policy:terrace\r\n\r\n# Persistence\r\nloading:" + number(group.will_join() ? 1 : 0);
  text += "\r\n\r\n# Stats\r\nkeyspace_hits:" + number(redis_->probe->hits());
  text += "\r\nkeyspace_misses:" + number(redis_->probe->misses());
  text += "\r\n\r\n# Replication\r\nrole:master\r\n\r\n# Keyspace\r\n";
  if (keys != 0)
    text += "db0:keys=" + number(keys) + ",expires=0,avg_ttl=0\r\n";
  return text;
}

} // namespace terrace::actors
