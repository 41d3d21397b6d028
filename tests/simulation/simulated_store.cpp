#include "simulated_store.hpp"

#include "simulated_sockets.hpp"

#include "protocol/resp/commands.hpp"
#include "protocol/resp/reply.hpp"
#include "remote/value_header.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace terrace::simulation {

using std::chrono::nanoseconds;

namespace {

/// All words of a command stay in the reader's buffer.
constexpr resp::reader_limits command_limits{.word_bytes_max = 2 << 20, .command_bytes_max = 4 << 20};
/// Values of this length or more are objects; the shorter ones are tokens of clears.
constexpr size_t object_bytes_least = 256;
constexpr int waiting_connections = 16;

/// What a forger makes of an encrypted value: its header stays, and its seal and its bytes are those of another one. Empty:
/// they are not encrypted, or have other lengths.
std::string forged(const std::string& value, const std::string& other) {
  auto header_of = [](const std::string& bytes) {
    return remote::decode_value_header(std::as_bytes(std::span(bytes)).first<remote::value_header_bytes>());
  };
  if (value.size() != other.size())
    return {};
  auto header = header_of(value), replaced_by = header_of(other);
  if (!header || !replaced_by || !header->seal || !replaced_by->seal)
    return {};
  header->seal = replaced_by->seal;
  std::string made = other;
  remote::encode(*header, std::as_writable_bytes(std::span(made)).first<remote::value_header_bytes>());
  return made;
}

} // namespace

store_habits store_habits::draw(seeded_random& random) {
  store_habits habits;
  habits.most = nanoseconds(random.swarm(5'000'000));
  habits.speaks_resp3 = random.below(4) != 0;
  if (random.below(4) == 0)
    habits.password = "open sesame";
  habits.late = random.swarm(20'000);
  habits.cut = random.swarm(500'000);
  habits.fails = random.swarm(100'000);
  habits.wrong = random.swarm(200'000);
  habits.forges = random.coin() ? 500'000 : 0;
  habits.evicts = random.swarm(200'000);
  return habits;
}

simulated_store::simulated_store(scheduler& events, uint64_t seed, std::string path, store_habits habits,
                                 trace to)
    : events_(events), random_(seed), path_(std::move(path)), habits_(std::move(habits)),
      trace_(std::move(to)) {
  listen();
}

simulated_store::~simulated_store() {
  events_.cancel(happens_);
  events_.cancel(clears_);
  close(false);
}

void simulated_store::say(const std::string& what) {
  if (trace_)
    trace_("the store " + what);
}

// ---- its life ----

void simulated_store::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
  ::unlink(path_.c_str());
  listener_ = unique_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), waiting_connections) != 0)
    listener_.reset();
  simulated_sockets::touch();
}

void simulated_store::close(bool answers_what_came) {
  events_.cancel(std::exchange(accepts_, 0));
  for (client& each : clients_)
    if (answers_what_came)
      receive(each); // others may be told of it
  for (client& each : clients_) {
    events_.cancel(each.receives);
    events_.cancel(each.sends);
  }
  clients_.clear();
  simulated_sockets::touch();
}

void simulated_store::live_dangerously(nanoseconds most) {
  happens_most_ = most;
  happens_ = events_.after(delay(most), [this] {
    something_happens();
    live_dangerously(happens_most_);
  });
}

void simulated_store::something_happens() {
  if (!is_there_) {
    bool empty = random_.coin();
    say(empty ? "comes back empty" : "comes back");
    if (empty)
      values_.clear();
    look_at_token();
    is_there_ = true;
    return listen();
  }
  if (stands_) {
    say("goes on");
    stands_ = false;
    return simulated_sockets::touch();
  }
  switch (random_.below(4)) {
    case 0:
      say("stands still");
      stands_ = true;
      return;
    case 1: say("loses its connections"); return close(random_.coin());
    case 2: {
      say("evicts");
      std::vector<std::string> keys;
      for (const auto& [key, each] : values_)
        if (random_.coin())
          keys.push_back(key);
      for (const std::string& key : keys)
        erase(key);
      return;
    }
    default:
      say("dies");
      close(random_.coin());
      listener_.reset();
      is_there_ = false;
  }
}

void simulated_store::recover() {
  say("recovers");
  std::string password = habits_.password;
  bool resp3 = habits_.speaks_resp3;
  habits_ = {.password = password, .speaks_resp3 = resp3};
  events_.cancel(std::exchange(happens_, 0));
  events_.cancel(std::exchange(clears_, 0));
  shared_ = {};
  stands_ = false;
  if (!std::exchange(is_there_, true))
    listen();
  simulated_sockets::touch();
}

// ---- another machine ----

void simulated_store::share(std::string key, nanoseconds most, nanoseconds within,
                            std::function<void(other_clear)> told) {
  shared_ = {std::move(key), most, within, std::move(told), {}, {}};
  clears_ = events_.after(delay(most), [this] { other_machine_clears(); });
}

void simulated_store::other_machine_clears() {
  clears_ = events_.after(delay(shared_.most), [this] { other_machine_clears(); });
  auto token = values_.find(shared_.key);
  if (!is_there_ || stands_ || !shared_.anew.empty() || token == values_.end() ||
      token->second.bytes != shared_.known)
    return;
  shared_.told(other_clear::begins);
  clear_as_other_machine(shared_.key);
  shared_.anew = token->second.bytes;
}

void simulated_store::clear_as_other_machine(const std::string& key) {
  say("is cleared by another machine");
  values_.at(key) = {remote::epoch_text(random_.next() | 1), std::nullopt};
  tell(key);
  simulated_sockets::touch();
}

/// The daemon knows it after some time, if the connection lasts and the reply is sent until then.
void simulated_store::sent_token(uint64_t to, const std::string& token) {
  events_.after(shared_.within, [this, to, token, life = life_] {
    auto client_of = std::find_if(clients_.begin(), clients_.end(),
                                  [to](const client& each) { return each.number == to; });
    if (!shared_.told || client_of == clients_.end() || life != life_)
      return;
    if (!client_of->replies.empty())
      return sent_token(to, token);
    shared_.known = token;
    if (token != shared_.anew)
      return;
    shared_.anew.clear();
    shared_.told(other_clear::known);
  });
}

void simulated_store::look_at_token() {
  auto token = values_.find(shared_.key);
  bool there = token != values_.end() && token->second.bytes == shared_.anew;
  if (shared_.anew.empty() || there)
    return;
  shared_.anew.clear();
  shared_.told(other_clear::lost);
}

void simulated_store::lose_daemon() {
  ++life_;
  shared_.known.clear();
  shared_.anew.clear();
  close(random_.coin());
  listener_.reset();
}

void simulated_store::serve_daemon() {
  if (is_there_)
    listen();
}

// ---- sockets ----

nanoseconds simulated_store::delay(nanoseconds most) {
  return nanoseconds(random_.between(0, static_cast<uint64_t>(most.count())));
}

void simulated_store::look() {
  if (stands_)
    return;
  std::vector<pollfd> watched;
  std::vector<client*> of;
  if (listener_ && accepts_ == 0) {
    watched.push_back({listener_.get(), POLLIN, 0});
    of.push_back(nullptr);
  }
  for (client& each : clients_)
    if (each.receives == 0) {
      watched.push_back({each.socket.get(), POLLIN, 0});
      of.push_back(&each);
    }
  for (client& each : clients_)
    if (each.sends == 0 && !each.replies.empty()) {
      watched.push_back({each.socket.get(), POLLOUT, 0});
      of.push_back(&each);
    }
  if (watched.empty() || ::poll(watched.data(), watched.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].revents == 0)
      continue;
    client* one = of[i];
    if (one == nullptr)
      accepts_ = events_.after(delay(habits_.most), [this] {
        accepts_ = 0;
        accept();
      });
    else if (watched[i].events == POLLIN)
      one->receives = events_.after(delay(habits_.most), [this, one] {
        one->receives = 0;
        if (!stands_)
          receive(*one);
        std::erase_if(clients_, [&](const client& each) { return &each == one && !each.socket; });
        simulated_sockets::touch();
      });
    else
      send_later(*one, delay(habits_.most));
  }
}

void simulated_store::accept() {
  if (stands_ || !listener_)
    return;
  unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    client& made = clients_.emplace_back();
    made.number = ++last_client_;
    made.socket = std::move(socket);
    made.reader = resp::command_reader(command_limits);
    made.admitted = habits_.password.empty();
    events_.note({20, made.number});
  }
  simulated_sockets::touch();
}

/// Serves all that has come. Its socket is closed if the client has gone.
void simulated_store::receive(client& from) {
  while (from.socket) {
    auto area = from.reader.write_area();
    ssize_t count = ::recv(from.socket.get(), area.data(), area.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN)
      return;
    if (count <= 0) {
      events_.cancel(std::exchange(from.sends, 0));
      return from.socket.reset();
    }
    from.reader.commit(static_cast<size_t>(count));
    for (auto step = from.reader.next(); step && step->what == resp::reader_step::kind::command;
         step = from.reader.next())
      serve(from, step->words);
  }
}

void simulated_store::send_later(client& to, nanoseconds after) {
  to.sends = events_.after(after, [this, one = &to] {
    one->sends = 0;
    send(*one);
  });
}

void simulated_store::send(client& to) {
  simulated_sockets::touch();
  if (stands_ || to.replies.empty())
    return;
  size_t part = to.replies.size() > 1 && random_.chance(habits_.cut) ? random_.between(1, to.replies.size())
                                                                     : to.replies.size();
  ssize_t sent = ::send(to.socket.get(), to.replies.data(), part, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0)
    to.replies.erase(0, static_cast<size_t>(sent));
}

// ---- commands ----

void simulated_store::serve(client& from, words command) {
  ++served_;
  std::string reply;
  if (random_.chance(habits_.fails)) {
    static constexpr std::array errors{"LOADING it loads", "OOM it is full", "BUSY a script runs",
                                       "ERR something"};
    reply = std::string("-") + errors[random_.below(errors.size())] + "\r\n";
  } else {
    answer(from, command, reply);
  }
  events_.note({21, from.number, command.size(), reply.size()});
  if (trace_)
    say(std::to_string(from.number) + " is asked " + std::string(command.front()) + " " +
        (command.size() > 1 ? std::string(command[1]) : "") + " and says " + reply.substr(0, 20));
  from.replies += reply;
  if (from.sends != 0)
    return;
  send_later(from, delay(random_.chance(habits_.late) ? habits_.latest : habits_.most));
}

void simulated_store::answer(client& to, words command, std::string& reply) {
  std::string_view name = command.front();
  auto is = [&](std::string_view each, size_t least) {
    return resp::same_word(name, each) && command.size() >= least;
  };
  if (is("hello", 1) || is("auth", 2))
    return greet(to, command, reply);
  if (!to.admitted)
    return resp::append_error(reply, "NOAUTH", "Authentication required.");
  if (is("client", 3) && habits_.speaks_resp3) {
    to.tracks = true;
    return resp::append_simple(reply, "OK");
  }
  if (is("ping", 1))
    return resp::append_simple(reply, "PONG");
  if (is("get", 2))
    return get(to, std::string(command[1]), reply);
  if (is("set", 3))
    return set(to, command, reply);
  if (!is("exists", 2) && !is("unlink", 2))
    return resp::append_error(reply, "ERR", "unknown command");
  uint64_t count = 0;
  for (std::string_view key : command.subspan(1)) {
    count += has(to, std::string(key)) ? 1 : 0;
    if (is("unlink", 2))
      erase(std::string(key));
  }
  bool wrong = command.size() == 2 && random_.chance(habits_.wrong);
  resp::append_integer(reply, wrong ? 1 - count : count);
}

void simulated_store::greet(client& to, words command, std::string& reply) {
  bool hello = resp::same_word(command.front(), "hello");
  if (hello && !habits_.speaks_resp3)
    return resp::append_error(reply, "ERR", "unknown command 'HELLO'");
  to.admitted = to.admitted || (command.back() == habits_.password);
  if (!to.admitted)
    return resp::append_error(reply, command.size() > 2 ? "WRONGPASS" : "NOAUTH", "not this password");
  if (!hello)
    return resp::append_simple(reply, "OK");
  resp::append_map_head(reply, resp::version::resp3, 2);
  for (const char* each : {"server", "simulated", "version", "1"})
    resp::append_value(reply, each);
}

void simulated_store::set(client& by, words command, std::string& reply) {
  std::string key(command[1]);
  value written{std::string(command[2]), std::nullopt};
  for (size_t i = 3; i < command.size(); ++i) {
    if (resp::same_word(command[i], "nx") && has(by, key))
      return resp::append_null(reply, habits_.speaks_resp3 ? resp::version::resp3 : resp::version::resp2);
    uint64_t seconds = 0;
    if (resp::same_word(command[i], "ex") && ++i < command.size()) {
      std::from_chars(command[i].data(), command[i].data() + command[i].size(), seconds);
      written.ends = events_.now() + std::chrono::seconds(seconds);
    }
  }
  values_[key] = std::move(written);
  look_at_token();
  tell(key);
  resp::append_simple(reply, "OK");
}

void simulated_store::get(client& by, const std::string& key, std::string& reply) {
  if (!has(by, key))
    return resp::append_null(reply, habits_.speaks_resp3 ? resp::version::resp3 : resp::version::resp2);
  std::string bytes = values_[key].bytes;
  if (bytes.size() >= object_bytes_least && random_.chance(habits_.wrong))
    spoil(bytes);
  if (bytes.size() >= object_bytes_least && random_.chance(habits_.forges))
    if (std::string made = forged(bytes, any_value()); !made.empty())
      bytes = std::move(made);
  if (shared_.told && key == shared_.key)
    sent_token(by.number, bytes);
  resp::append_value(reply, bytes);
}

/// What is returned instead of a value.
void simulated_store::spoil(std::string& bytes) {
  switch (random_.below(4)) {
    case 0: bytes[random_.below(bytes.size())] ^= static_cast<char>(1 << random_.below(8)); return;
    case 1: bytes.resize(random_.below(bytes.size())); return;
    case 2: bytes += bytes; return;
    default: bytes = any_value();
  }
}

const std::string& simulated_store::any_value() {
  auto at = static_cast<std::ptrdiff_t>(random_.below(values_.size()));
  return std::next(values_.begin(), at)->second.bytes;
}

bool simulated_store::has(client& by, const std::string& key) {
  if (by.tracks)
    by.asked.insert(key);
  auto found = values_.find(key);
  if (found == values_.end())
    return false;
  bool evicted = found->second.bytes.size() >= object_bytes_least && random_.chance(habits_.evicts);
  if (!evicted && (!found->second.ends || *found->second.ends > events_.now()))
    return true;
  erase(key);
  return false;
}

void simulated_store::erase(const std::string& key) {
  if (values_.erase(key) == 0)
    return;
  look_at_token();
  tell(key);
}

/// Whoever has asked for the key is told once that it has changed.
void simulated_store::tell(const std::string& key) {
  for (client& each : clients_)
    if (each.asked.erase(key) != 0) {
      each.replies += ">2\r\n";
      resp::append_value(each.replies, "invalidate");
      resp::append_array_head(each.replies, 1);
      resp::append_value(each.replies, key);
      if (each.sends == 0)
        send_later(each, delay(habits_.most));
    }
}

} // namespace terrace::simulation
