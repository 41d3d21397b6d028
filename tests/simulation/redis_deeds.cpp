// What Redis clients do.
#include "redis_client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <numeric>

namespace terrace::simulation {

using resp::reply_type;

namespace {

enum deed_of_redis : uint8_t {
  set_one,
  set_many,
  get_one,
  get_many,
  count_some,
  remove_some,
  echo_text,
  look,
  refused,
  broken_off,
  strange,
  wait,
  unread,
  gone
};
constexpr std::array<uint32_t, 14> weights{20, 5, 25, 8, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1};
constexpr size_t commands_together = 48; ///< commands of a client that wait for their replies
constexpr auto command_pause = std::chrono::seconds(5);

} // namespace

/// Swarm testing: each client does some things often, and others never.
void redis_client::draw_mix() {
  for (uint32_t weight : weights)
    mix_.push_back(random_.below(5) == 0 ? 0 : random_.below(6) == 0 ? 8 * weight : weight);
  mix_.front() = weights.front();
}

void redis_client::do_one() {
  uint64_t draw = random_.below(std::accumulate(mix_.begin(), mix_.end(), uint64_t{0}));
  size_t which = 0;
  while (draw >= mix_[which])
    draw -= mix_[which++];
  if (asked_.size() >= commands_together && which < strange)
    return;
  switch (which) {
    case set_one: return set(false);
    case set_many: return set(true);
    case get_one: return get(false);
    case get_many: return get(true);
    case count_some: return count();
    case remove_some: return remove();
    case echo_text: return echo();
    case look: return look_around();
    case refused: return be_refused();
    case broken_off: return break_off();
    case strange: return be_hostile();
    case wait: return pause();
    case unread: return stop_reading();
    default: return disconnect();
  }
}

redis_client::key redis_client::any_key() {
  return {group_, static_cast<uint32_t>(random_.below(world_.keys))};
}

/// Each of them once.
std::vector<redis_client::key> redis_client::some_keys() {
  std::vector<key> keys(world_.keys);
  for (uint32_t i = 0; i < world_.keys; ++i)
    keys[i] = {group_, i};
  random_.shuffle(keys);
  keys.resize(random_.between(1, keys.size()));
  return keys;
}

/// Values of all lengths; one of less than 8 bytes could not tell its version.
redis_client::word redis_client::new_value(const key& which) {
  size_t most = random_.coin() ? world_.bytes_most : std::min<size_t>(world_.bytes_most, 200);
  size_t bytes = random_.below(32) == 0 ? 0 : random_.between(8, most);
  word made(std::string(bytes, '\0'));
  made.value = world_.values.sets(which, connection_, bytes);
  daemon_model::fill(std::as_writable_bytes(std::span(made.text)), made.value);
  return made;
}

// ---- commands ----

void redis_client::set(bool many) {
  std::vector<word> words{many ? "MSET" : "SET"};
  std::vector<daemon_model::version> versions;
  for (const key& each : many ? some_keys() : std::vector{any_key()}) {
    words.emplace_back(name_of(each));
    words.push_back(new_value(each));
    versions.push_back(words.back().value);
  }
  ask(words, [this, versions](const reply& all) {
    if (is_error(all) ? !is_allowed(all.front().text) : all.front().text != "OK")
      broke("SET is answered: " + all.front().text);
    for (auto each : versions)
      world_.values.answered(each, !is_error(all));
  });
}

void redis_client::get(bool many) {
  auto keys = many ? some_keys() : std::vector{any_key()};
  std::vector<word> words{many ? "MGET" : "GET"};
  std::vector<value_model::reading> readings;
  for (const key& each : keys) {
    words.emplace_back(name_of(each));
    readings.push_back(world_.values.reads(each, connection_));
  }
  ask(words, [this, readings, many](const reply& all) {
    if (is_error(all)) {
      if (!is_allowed(all.front().text))
        broke("GET is answered: " + all.front().text);
      return;
    }
    size_t first = many ? 1 : 0;
    if (all.size() != first + readings.size() || (many && all.front().type != reply_type::array))
      return broke("GET is answered with " + std::to_string(all.size()) + " items");
    for (size_t i = 0; i < readings.size(); ++i) {
      const item& one = all[first + i];
      if (one.type == reply_type::text)
        world_.values.saw(readings[i], one.text);
      else if (one.type == reply_type::null)
        world_.values.saw(readings[i], std::nullopt);
      else
        broke("GET is answered with something else than a value");
    }
  });
}

/// `done` is told whether the command has counted.
void redis_client::count_keys(const char* command, const std::vector<key>& keys,
                              std::function<void(bool)> done) {
  std::vector<word> words{command};
  std::vector<value_model::reading> readings;
  for (const key& each : keys) {
    words.emplace_back(name_of(each));
    readings.push_back(world_.values.reads(each, connection_));
  }
  std::string name = command;
  auto expected = [this, readings, name, done = std::move(done)](const reply& all) {
    bool counted = all.front().type == reply_type::integer;
    if (counted)
      world_.values.counted(readings, static_cast<uint64_t>(all.front().number));
    else if (!is_error(all) || !is_allowed(all.front().text))
      broke(name + " is answered: " + all.front().text);
    if (done)
      done(counted);
  };
  ask(words, expected);
}

void redis_client::count() { count_keys("EXISTS", some_keys(), nullptr); }

void redis_client::remove() {
  auto keys = random_.below(4) == 0 ? some_keys() : std::vector{any_key()};
  auto removals = std::make_shared<std::vector<value_model::removal>>();
  count_keys(random_.coin() ? "DEL" : "UNLINK", keys, [this, removals](bool done) {
    for (const auto& each : *removals)
      world_.values.removed(each, done);
  });
  for (const key& each : keys)
    removals->push_back(world_.values.removes(each, connection_));
}

/// An answer of its own shows that replies come in order.
void redis_client::echo() {
  std::string text = "echo " + std::to_string(++echoes_);
  ask({random_.coin() ? "ECHO" : "PING", text}, [this, text](const reply& all) {
    if (all.front().text != text)
      broke("\"" + text + "\" is answered: " + all.front().text);
  });
}

void redis_client::look_around() {
  switch (random_.below(5)) {
    case 0:
      return ask({"DBSIZE"}, [this](const reply& all) {
        if (all.front().type != reply_type::integer)
          broke("DBSIZE is answered: " + all.front().text);
      });
    case 1:
      return ask({"INFO"}, [this](const reply& all) {
        if (all.front().text.find("maxmemory:") == std::string::npos)
          broke("INFO is answered: " + all.front().text);
      });
    case 2:
      return ask({"CLIENT", "SETNAME", "client-" + std::to_string(number_)}, [this](const reply& all) {
        if (all.front().text != "OK")
          broke("CLIENT SETNAME is answered: " + all.front().text);
      });
    case 3:
      return ask({"COMMAND", "COUNT"}, [this](const reply& all) {
        if (all.front().type != reply_type::integer)
          broke("COMMAND COUNT is answered: " + all.front().text);
      });
    default: echo();
  }
}

/// What is refused changes nothing.
void redis_client::be_refused() {
  auto refused = [this](const reply& all) {
    if (!is_error(all))
      broke("what is no command is answered: " + all.front().text);
  };
  switch (random_.below(4)) {
    case 0: return ask({"EXPIRE", "key 0", "1"}, refused);
    case 1: return ask({"GET"}, refused);
    case 2: return ask({"GET", std::string(random_.between(17 << 10, 40 << 10), 'k')}, refused);
    default: {
      key which = any_key();
      word value = new_value(which);
      auto version = std::exchange(value.value, 0); // nobody may see it
      ask({"SET", name_of(which), value, "EX", "1"}, [this, refused, version](const reply& all) {
        refused(all);
        world_.values.answered(version, false);
      });
    }
  }
}

// ---- what nobody should do ----

/// It dies in the middle of a value.
void redis_client::break_off() {
  key which = any_key();
  word value = new_value(which);
  ask({"SET", name_of(which), value}, nullptr);
  std::string& bytes = line_.back().bytes;
  bytes.resize(bytes.size() -
               std::min(bytes.size(), random_.between(3, std::max<size_t>(3, value.text.size()))));
  line_.back().completes = 0;
  breaks_off_ = true;
}

/// On a socket of its own, which nobody reads.
void redis_client::be_hostile() {
  if (strange_.size() >= 2 || (!strange_.empty() && random_.coin())) {
    strange_.pop_front();
    return;
  }
  auto socket = world_.all.down ? unique_fd() : open_socket();
  if (!socket)
    return;
  static constexpr std::string_view parts[] = {"*2\r\n$3\r\nGET\r\n$5\r\nkey 1\r\n",
                                               "*1\r\n$4\r\nPING\r\n",
                                               "*3\r\n$6\r\nEXISTS\r\n$5\r\nkey 1\r\n$5\r\nkey 2\r\n",
                                               "*70000\r\n",
                                               "*2\r\n$3\r\nGET\r\n$999999999999\r\n",
                                               "GET key\r\n",
                                               "\r\n\r\n",
                                               "*-1\r\n",
                                               "$5\r\n",
                                               "*2\r\n$4\r\nECHO\r\n$30000\r\n"};
  std::string bytes;
  for (uint64_t count = random_.between(1, 8); count > 0; --count)
    bytes += parts[random_.below(std::size(parts))];
  for (uint64_t changes = random_.below(3); changes > 0; --changes)
    bytes[random_.below(bytes.size())] = static_cast<char>(random_.next());
  bytes.resize(random_.coin() ? bytes.size() : random_.below(bytes.size() + 1));
  (void) !::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  strange_.push_back(std::move(socket));
  world_.all.events.note({12, number_, bytes.size()});
}

void redis_client::pause() {
  acting_ = true;
  world_.all.events.after(command_pause, [this] {
    acting_ = false;
    act_later();
  });
}

/// The daemon ends a connection whose replies nobody takes for some time.
void redis_client::stop_reading() {
  reads_ = !reads_;
  reads_since_ = world_.all.events.now();
  may_be_closed_ = true;
}

} // namespace terrace::simulation
