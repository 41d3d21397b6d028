#include "remote/valkey_connection.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace terrace::remote {

using resp::reply_step;
using resp::reply_type;

namespace {

constexpr size_t said_bytes_max = 200; ///< of a server's text in one of ours

std::string shown(std::string_view said) { return printable(said.substr(0, said_bytes_max)); }

tl::unexpected<error> unexpected_reply(const char* expected) {
  return fail(errc::bad_request,
              std::string("the server violates the protocol of Redis: ") + expected +
                  " was expected; check that the address is that of a Valkey or Redis server");
}

constexpr std::string_view no_cluster = "ERR This instance has cluster support disabled";

// `word`: the first of what the server says; `text`: what is shown of all of it.
error meaning_of(std::string_view word, const std::string& text) {
  constexpr const char* node_of_cluster =
      "the server is a node of a cluster: write its address with cluster:// in front";
  struct {
    std::string_view word;
    errc code;
    const char* fix;
  } constexpr known[] = {
      {"NOAUTH", errc::denied, "the server asks for a password: set password_file"},
      {"WRONGPASS", errc::denied, "the server refuses the password: check user and password_file"},
      {"NOPERM", errc::denied,
       "the user may not do this: let it call HELLO, SELECT, EXISTS, GET, SET, UNLINK, CLIENT, in a cluster "
       "CLUSTER and ASKING, with reads=replicas READONLY, and INFO, SCAN and STRLEN for operators"},
      {"OOM", errc::no_space, "the store is full and evicts nothing: set maxmemory-policy to allkeys-lru"},
      {"LOADING", errc::busy, "the store is starting: it is asked again"},
      {"BUSY", errc::busy, "the store runs a script: it is asked again"},
      {"TRYAGAIN", errc::busy, "the store moves the key: it is asked again"},
      {"MISCONF", errc::busy, "the store cannot write its own disk: look at its log"},
      {"MASTERDOWN", errc::busy, "the store is a replica without its primary: it is asked again"},
      {"READONLY", errc::unsupported,
       "the server is a replica: give the address of its primary, or of sentinels that watch it"},
      {"MOVED", errc::unsupported, node_of_cluster},
      {"ASK", errc::unsupported, node_of_cluster},
      {"CLUSTERDOWN", errc::busy,
       "the cluster does not serve all slots: look at CLUSTER INFO, and set cluster-require-full-coverage "
       "no"},
      {"NOPROTO", errc::unsupported, "the server speaks another protocol: Valkey or Redis was expected"},
  };
  if (text.starts_with(no_cluster))
    return {errc::unsupported, "it says: " + text};
  for (const auto& one : known)
    if (one.word == word)
      return {one.code, std::string(one.fix) + " (it says: " + text + ")"};
  return {errc::internal, "the store refuses a command: " + text};
}

server_mode mode_named(std::string_view name) {
  return name == "standalone" ? server_mode::standalone
         : name == "cluster"  ? server_mode::cluster
         : name == "sentinel" ? server_mode::sentinel
                              : server_mode::unknown;
}

std::string_view first_word(std::string_view said) { return said.substr(0, said.find(' ')); }

} // namespace

error error_of_server(std::string_view said) { return meaning_of(first_word(said), shown(said)); }

// ---- commands ----

valkey_connection::valkey_connection(store_login login, bool of_replica)
    : login_(std::move(login)), of_replica_(of_replica) {
  greet();
}

std::string& valkey_connection::begin(uint64_t tag, command what) {
  assert(has_room() && (ready_ || what <= command::read_only));
  expected_.push_back({.tag = tag, .what = what});
  return outgoing_.text();
}

void valkey_connection::add(uint64_t tag, command what, std::initializer_list<std::string_view> words) {
  std::string& text = begin(tag, what);
  resp::append_array_head(text, words.size());
  for (std::string_view word : words)
    resp::append_value(text, word);
}

void valkey_connection::ping(uint64_t tag) { add(tag, command::ping, {"PING"}); }
void valkey_connection::exists(uint64_t tag, std::span<const std::string_view> keys) {
  std::string& text = begin(tag, command::exists);
  resp::append_array_head(text, 1 + keys.size());
  resp::append_value(text, "EXISTS");
  for (std::string_view key : keys)
    resp::append_value(text, key);
  expected_.back().keys = static_cast<int64_t>(keys.size());
}
void valkey_connection::read_text(uint64_t tag, std::string_view key) {
  add(tag, command::read_text, {"GET", key});
}
void valkey_connection::erase(uint64_t tag, std::string_view key) {
  add(tag, command::erase, {"UNLINK", key});
}
void valkey_connection::length(uint64_t tag, std::string_view key) {
  add(tag, command::length, {"STRLEN", key});
}
void valkey_connection::scan(uint64_t tag, std::string_view cursor, std::string_view pattern, size_t count) {
  add(tag, command::scan, {"SCAN", cursor, "MATCH", pattern, "COUNT", std::to_string(count)});
}
void valkey_connection::info(uint64_t tag, std::string_view section) {
  add(tag, command::info, {"INFO", section});
}
void valkey_connection::primary(uint64_t tag, std::string_view name) {
  add(tag, command::primary, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
}
void valkey_connection::slots(uint64_t tag) { add(tag, command::slots, {"CLUSTER", "SLOTS"}); }
void valkey_connection::asking() { add(0, command::asking, {"ASKING"}); }
void valkey_connection::track(uint64_t tag) {
  assert(can_track());
  add(tag, command::track, {"CLIENT", "TRACKING", "ON"});
}

void valkey_connection::read(uint64_t tag, std::string_view key, std::span<std::byte> header,
                             std::span<std::byte> payload) {
  add(tag, command::read, {"GET", key});
  expected_.back().places = {header, payload};
}

void valkey_connection::write(uint64_t tag, std::string_view key, std::span<const std::byte> header,
                              std::span<const std::byte> payload, keep_alive owner,
                              std::chrono::seconds lifetime) {
  bool expires = lifetime.count() > 0;
  std::string& text = begin(tag, command::write);
  resp::append_array_head(text, expires ? 5 : 3);
  resp::append_value(text, "SET");
  resp::append_value(text, key);
  resp::append_value_head(text, header.size() + payload.size());
  text.append(reinterpret_cast<const char*>(header.data()), header.size());
  if (!payload.empty())
    outgoing_.add_value(payload, std::move(owner));
  std::string& rest = outgoing_.text();
  rest.append(resp::end_of_value);
  if (expires) {
    resp::append_value(rest, "EX");
    resp::append_value(rest, std::to_string(lifetime.count()));
  }
}

void valkey_connection::write_text(uint64_t tag, std::string_view key, std::string_view text) {
  add(tag, command::write, {"SET", key, text});
}

void valkey_connection::write_text_if_absent(uint64_t tag, std::string_view key, std::string_view text) {
  add(tag, command::write_if_absent, {"SET", key, text, "NX"});
}

// ---- logging in ----

void valkey_connection::greet() {
  if (login_.password.empty())
    return add(0, command::hello, {"HELLO", "3"});
  std::string_view user = login_.user.empty() ? std::string_view("default") : login_.user;
  add(0, command::hello, {"HELLO", "3", "AUTH", user, login_.password});
}

// The server is older than HELLO.
void valkey_connection::authenticate() {
  if (login_.password.empty())
    return select_database();
  if (login_.user.empty())
    return add(0, command::auth, {"AUTH", login_.password});
  add(0, command::auth, {"AUTH", login_.user, login_.password});
}

void valkey_connection::select_database() {
  if (login_.database == 0)
    let_in();
  else
    add(0, command::select, {"SELECT", std::to_string(login_.database)});
}

void valkey_connection::let_in() {
  if (of_replica_)
    add(0, command::read_only, {"READONLY"});
  else
    ready_ = true;
}

result<void> valkey_connection::take_greeting(const reply_step& step) {
  command what = expected_.front().what;
  expected_.pop_front();
  if (step.type != reply_type::error) {
    speaks_resp3_ |= what == command::hello;
    if (what == command::read_only)
      ready_ = true;
    else if (what == command::select)
      let_in();
    else
      select_database();
    return {};
  }
  // Valkey 9 asks for the password before it says that it does not know a command.
  const bool unknown = step.text.starts_with("ERR unknown command") || step.text.starts_with("NOPROTO") ||
                       (step.text.starts_with("NOAUTH Authentication required") && !login_.password.empty());
  if (what == command::hello && unknown) {
    authenticate();
    return {};
  }
  return tl::unexpected(rejection(step.text));
}

error valkey_connection::rejection(std::string_view said) const {
  // Some servers repeat the words of a command that they do not know. Cutting the password out of the text is not
  // enough: what is left of it may join into the password again.
  bool repeats = !login_.password.empty() && said.find(login_.password) != std::string_view::npos;
  std::string text = repeats ? "a text with the password in it, not shown here" : shown(said);
  error why = meaning_of(first_word(said), text);
  if (why.code == errc::internal)
    why = {errc::denied,
           "the store does not let us in: check user, password_file and database (it says: " + text + ")"};
  return why;
}

// ---- bytes ----

std::span<std::byte> valkey_connection::receive_area() {
  if (has_place_ && reader_.value_left() != 0)
    return next_place();
  return std::as_writable_bytes(reader_.write_area());
}

result<void> valkey_connection::received(size_t bytes) {
  if (has_place_ && reader_.value_left() != 0) {
    reader_.value_received(bytes);
    auto& places = expected_.front().places;
    auto& first = places[0].empty() ? places[1] : places[0];
    first = first.subspan(bytes);
  } else {
    reader_.commit(bytes);
  }
  return parse();
}

std::span<std::byte> valkey_connection::next_place() {
  auto& places = expected_.front().places;
  return places[0].empty() ? places[1] : places[0];
}

void valkey_connection::place(std::string_view bytes) {
  for (auto& place : expected_.front().places) {
    size_t count = std::min(place.size(), bytes.size());
    if (count != 0)
      std::memcpy(place.data(), bytes.data(), count);
    place = place.subspan(count);
    bytes.remove_prefix(count);
  }
}

// A value may be shorter than the place for it.
void valkey_connection::expect_value(size_t bytes) {
  expected_reply& first = expected_.front();
  first.payload_bytes = bytes - first.places[0].size();
  first.places[1] = first.places[1].first(first.payload_bytes);
}

// Takes what has come of a value along with other bytes.
void valkey_connection::take_value() {
  auto part = reader_.take_value();
  if (has_place_)
    place(part);
}

result<void> valkey_connection::parse() {
  while (true) {
    take_value();
    if (reader_.value_left() != 0)
      return {};
    auto step = reader_.next();
    if (!step)
      return tl::unexpected(step.error());
    if (step->what == reply_step::kind::more)
      return {};
    if (auto taken = take(*step); !taken)
      return taken;
  }
  return {};
}

result<void> valkey_connection::take(const reply_step& step) {
  if (step.depth == 0 && step.type == reply_type::push) {
    pushed_ = true;
    pushed_items_ = 0;
    invalidates_ = false;
  } else if (pushed_) {
    take_pushed(step);
  } else if (auto taken = take_reply(step); !taken) {
    return taken;
  }
  if (step.last)
    pushed_ = false;
  return {};
}

void valkey_connection::take_pushed(const reply_step& step) {
  if (step.what == reply_step::kind::value)
    return;
  if (pushed_items_++ == 0) {
    invalidates_ = step.text == "invalidate";
    return;
  }
  if (!invalidates_)
    return;
  if (step.what == reply_step::kind::value_end || step.type == reply_type::null ||
      invalidated_.keys.size() == invalidated_max)
    invalidated_ = {.all = true, .keys = {}};
  else if (step.type == reply_type::text && !invalidated_.all)
    invalidated_.keys.emplace_back(step.text);
}

result<void> valkey_connection::take_reply(const reply_step& step) {
  if (expected_.empty())
    return unexpected_reply("a command before its reply");
  expected_reply& first = expected_.front();
  if (first.what <= command::read_only) { // the reply to HELLO is a map
    take_server(step);
    if (!step.last)
      return {};
    return take_greeting(step);
  }
  if (first.what == command::scan && (step.type != reply_type::error || step.depth != 0))
    return take_scanned(step);
  if (first.what == command::primary && (step.items != 0 || step.depth != 0))
    return take_primary(step);
  if (first.what == command::slots && (step.type != reply_type::error || step.depth != 0))
    return take_slots(step);
  if (step.depth != 0 || step.items != 0)
    return unexpected_reply("a reply of one item");
  if (first.what == command::asking) { // if it is refused, so is the command behind it
    if (step.what != reply_step::kind::value)
      expected_.pop_front();
    return {};
  }
  bool is_read =
      first.what == command::read || first.what == command::read_text || first.what == command::info;
  if (step.what == reply_step::kind::value) {
    has_place_ = first.what == command::read && first.takes(step.value_bytes);
    if (has_place_)
      expect_value(step.value_bytes);
    return {};
  }
  if (step.what == reply_step::kind::value_end) {
    bool placed = std::exchange(has_place_, false);
    if (step.type == reply_type::error)
      finish(command_result::refused, error_of_server("an error of more than 4 KiB"));
    else if (is_read)
      finish(placed ? command_result::done : command_result::wrong_length, {}, {},
             static_cast<int64_t>(first.payload_bytes));
    else
      return unexpected_reply("a short reply");
    return {};
  }
  if (step.type == reply_type::error) {
    finish(command_result::refused, error_of_server(step.text));
    finished_.back().redirected = parse_redirection(step.text);
    finished_.back().cluster_down = first_word(step.text) == "CLUSTERDOWN";
    return {};
  }
  return take_item(step);
}

// The reply to HELLO: names and values one after the other.
void valkey_connection::take_server(const reply_step& step) {
  if (step.depth != 1 || step.what != reply_step::kind::item)
    return;
  std::string text(step.text.substr(0, said_bytes_max));
  if (greeted_with_ == "server")
    server_name_ = printable(text);
  else if (greeted_with_ == "version")
    server_version_ = printable(text);
  else if (greeted_with_ == "mode")
    mode_ = mode_named(text);
  greeted_with_ = std::move(text);
}

// An array of the next cursor and an array of keys.
result<void> valkey_connection::take_scanned(const reply_step& step) {
  const bool is_text = step.what == reply_step::kind::item && step.type == reply_type::text;
  const bool is_list = step.what == reply_step::kind::item && step.type == reply_type::array;
  if (step.depth == 0 ? !is_list || step.items != 2 : step.depth == 1 && !is_list && !is_text)
    return unexpected_reply("a cursor and keys");
  if (step.depth == 1 && is_text)
    scanned_.text = step.text;
  else if (step.depth == 2 && is_text)
    scanned_.keys.emplace_back(step.text);
  if (!step.last)
    return {};
  scanned_.tag = expected_.front().tag;
  scanned_.result = command_result::done;
  finished_.push_back(std::exchange(scanned_, {}));
  expected_.pop_front();
  return {};
}

// An array of the numeric address and the port.
result<void> valkey_connection::take_primary(const reply_step& step) {
  const bool is_text = step.what == reply_step::kind::item && step.type == reply_type::text;
  if (step.depth == 0 ? step.type != reply_type::array || step.items != 2 : step.depth != 1 || !is_text)
    return unexpected_reply("an address and a port");
  if (step.depth == 1 && !step.last)
    scanned_.text = step.text.find(':') == std::string_view::npos ? std::string(step.text)
                                                                  : "[" + std::string(step.text) + "]";
  if (!step.last)
    return {};
  scanned_.text += ":" + std::string(step.text);
  finish(command_result::done, {}, std::exchange(scanned_.text, {}));
  return {};
}

// The host may be told behind the port, among the properties: then the address replaces the former one.
void valkey_connection::name_node(slot_range& range) {
  std::string address = address_text(slots_.host, slots_.port);
  if (slots_.of_range == 3)
    range.primary = std::move(address);
  else if (slots_.named)
    range.replicas.back() = std::move(address);
  else if (slots_.named = range.replicas.size() < slot_range::replicas_max; slots_.named)
    range.replicas.push_back(std::move(address));
}

// An array of ranges: the first slot, the last one, the primary and its replicas. Each of these is an array too: a host, a port, a
// name, and properties in pairs. A host that is no numeric address has one among them.
result<void> valkey_connection::take_slots(const reply_step& step) {
  constexpr const char* expected = "the slots of a cluster";
  if (step.what != reply_step::kind::item)
    return unexpected_reply(expected);
  const bool is_array = step.type == reply_type::array, is_number = step.type == reply_type::integer;
  const bool of_primary = slots_.of_range == 3, of_node = slots_.of_range >= 3;
  bool fits = true;
  if (step.depth == 0) {
    fits = is_array;
  } else if (step.depth == 1) {
    fits = is_array && step.items >= 3;
    slots_ = {};
    scanned_.slots.emplace_back();
  } else if (step.depth == 2) {
    const size_t place = slots_.of_range++;
    slots_.of_node = 0;
    slots_.host.clear();
    slots_.port = 0;
    slots_.named = false;
    fits = place < 2 ? is_number && step.number >= 0 && step.number < cluster_slots
                     : is_array && step.items >= 2;
    if (place < 2)
      (place == 0 ? scanned_.slots.back().first : scanned_.slots.back().last) =
          static_cast<uint32_t>(step.number);
  } else if (step.depth == 3 && of_node) {
    const size_t place = slots_.of_node++;
    if (place == 0)
      slots_.host = step.text;
    const bool is_port = is_number && step.number > 0 && step.number <= UINT16_MAX;
    if (place == 1)
      slots_.port = is_port ? static_cast<uint64_t>(step.number) : 0;
    fits = place != 1 || is_port || !of_primary;
  } else if (step.depth == 4 && of_node) {
    if (slots_.property == "ip" && step.type == reply_type::text)
      slots_.host = step.text;
    slots_.property = step.text;
  }
  if (!fits)
    return unexpected_reply(expected);
  if (step.depth >= 3 && slots_.port != 0)
    name_node(scanned_.slots.back());
  if (!step.last)
    return {};
  for (const slot_range& range : scanned_.slots)
    if (range.first > range.last || range.primary.empty())
      return unexpected_reply(expected);
  slots_ = {};
  scanned_.tag = expected_.front().tag;
  scanned_.result = command_result::done;
  finished_.push_back(std::exchange(scanned_, {}));
  expected_.pop_front();
  return {};
}

result<void> valkey_connection::take_item(const reply_step& step) {
  expected_reply& first = expected_.front();
  switch (first.what) {
    case command::exists:
    case command::erase:
      if (step.type != reply_type::integer)
        return unexpected_reply("an integer");
      finish(step.number >= first.keys ? command_result::done : command_result::absent);
      return {};
    case command::length:
      if (step.type != reply_type::integer)
        return unexpected_reply("an integer");
      finish(command_result::done, {}, {}, step.number);
      return {};
    case command::info:
    case command::primary:
    case command::read:
    case command::read_text:
      if (step.type == reply_type::null) {
        finish(command_result::absent);
      } else if (step.type != reply_type::text) {
        return unexpected_reply("a text or null");
      } else if (first.what != command::read) {
        finish(command_result::done, {}, std::string(step.text));
      } else if (!first.takes(step.text.size())) {
        finish(command_result::wrong_length);
      } else {
        expect_value(step.text.size());
        place(step.text);
        finish(command_result::done, {}, {}, static_cast<int64_t>(first.payload_bytes));
      }
      return {};
    case command::write_if_absent:
      if (step.type == reply_type::null) {
        finish(command_result::absent);
        return {};
      }
      [[fallthrough]];
    default:
      if (step.type != reply_type::simple)
        return unexpected_reply("OK");
      finish(command_result::done);
      return {};
  }
}

void valkey_connection::finish(command_result result, error why, std::string text, int64_t number) {
  finished_.push_back({.tag = expected_.front().tag,
                       .result = result,
                       .why = std::move(why),
                       .text = std::move(text),
                       .number = number});
  expected_.pop_front();
}

std::optional<finished_command> valkey_connection::next_finished() {
  if (finished_.empty())
    return std::nullopt;
  auto first = std::move(finished_.front());
  finished_.pop_front();
  return first;
}

} // namespace terrace::remote
