#include "redis_client.hpp"

#include "simulated_sockets.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace terrace::simulation {

using resp::reply_type;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds waits_for_door = std::chrono::milliseconds(10);
constexpr size_t line_end_bytes = 2;
/// All replies of a test stay in the reader's buffer.
constexpr resp::reply_limits limits{.text_bytes_max = 1 << 20, .buffer_bytes = 64 << 10};

std::string length_line(char mark, size_t length) { return mark + std::to_string(length) + "\r\n"; }

} // namespace

redis_client::redis_client(redis_world& world, uint32_t number, size_t door, uint64_t seed,
                           uint32_t deeds_left)
    : world_(world), number_(number), group_(world.doors[door].first), door_(world.doors[door].second),
      random_(seed), left_(deeds_left), reader_(limits) {
  process_.pid = static_cast<pid_t>(2'000'000 + number_);
  process_.uid = simulated_calls::user;
  process_.name = "terrace-redis-" + std::to_string(::getpid()) + "-" + std::to_string(process_.pid);
  process_.ends = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC));
  draw_mix();
}

void redis_client::say(const std::string& what) const {
  if (world_.all.trace)
    world_.all.trace("Redis client " + std::to_string(number_) + " " + what);
}

void redis_client::broke(const std::string& what) const {
  world_.all.model.broke("Redis client " + std::to_string(number_) + ": " + what);
}

std::string redis_client::unanswered() const {
  std::string text = "Redis client " + std::to_string(number_) + ":";
  for (const asked& each : asked_)
    text += " " + each.name;
  return text;
}

// ---- connecting ----

unique_fd redis_client::open_socket() {
  simulated_peer as = process_;
  as.name += "-" + std::to_string(++sockets_);
  return world_.all.connect(as, door_.path);
}

void redis_client::connect() {
  socket_ = world_.all.down ? unique_fd() : open_socket();
  if (!connected())
    return;
  connection_ = uint64_t{number_} << 32 | sockets_;
  reader_ = resp::reply_reader(limits);
  reads_ = true;
  may_be_closed_ = breaks_off_ = false;
  reads_since_ = heard_ = world_.all.events.now();
  say("connects");
  greet();
}

/// Whoever has to give a password does so first.
void redis_client::greet() {
  if (auto version = random_.below(3); version != 0) {
    std::vector<word> words{"HELLO", version == 1 ? "2" : "3"};
    if (!door_.password.empty())
      words.insert(words.end(), {"AUTH", "default", door_.password});
    ask(words, [this](const reply& all) {
      if (all.front().items < 14)
        broke("HELLO is not answered with what the server is");
    });
  } else if (!door_.password.empty()) {
    if (random_.coin()) {
      ask({"AUTH", "wrong"}, nullptr);
      ask({"GET", "key 0"}, nullptr);
    }
    ask({"AUTH", door_.password}, [this](const reply& all) {
      if (all.front().text != "OK")
        broke("the password is not accepted");
    });
  }
}

void redis_client::disconnect() {
  if (connected())
    say("disconnects");
  socket_.reset();
  line_.clear();
  asked_.clear();
  reply_.clear();
}

void redis_client::lose_daemon() {
  disconnect();
  strange_.clear();
}

void redis_client::leave() {
  left_ = 0;
  lose_daemon();
}

void redis_client::wind_up() {
  left_ = 0;
  if (!std::exchange(reads_, true))
    reads_since_ = world_.all.events.now();
  simulated_sockets::touch();
}

// ---- acting ----

void redis_client::act_later() {
  if (acting_ || left_ == 0)
    return;
  acting_ = true;
  auto most = std::max(world_.all.thinks_most, connected() ? nanoseconds{} : waits_for_door);
  world_.all.events.after(nanoseconds(random_.between(0, static_cast<uint64_t>(most.count()))), [this] {
    acting_ = false;
    act();
  });
}

void redis_client::act() {
  simulated_sockets::touch();
  if (left_ == 0)
    return;
  if (!connected())
    connect();
  else if (!breaks_off_)
    for (uint64_t more = random_.coin() ? 1 : random_.between(1, 20);
         more > 0 && left_ > 0 && connected() && !breaks_off_; --more) {
      --left_;
      do_one();
    }
  act_later();
}

// ---- the socket ----

size_t redis_client::part_of(size_t bytes) {
  return bytes > 1 && random_.chance(world_.all.cut) ? random_.between(1, bytes) : bytes;
}

short redis_client::wants() const {
  return static_cast<short>((reads_ ? POLLIN : 0) | (line_.empty() ? 0 : POLLOUT));
}

void redis_client::ready() {
  simulated_sockets::touch();
  if (connected())
    send_some();
  if (connected() && reads_)
    receive_some();
}

void redis_client::ask(const std::vector<word>& words, handler done) {
  if (!connected())
    return;
  if (asked_.empty())
    heard_ = world_.all.events.now();
  asked_.push_back({words.front().text, world_.all.events.now(), std::move(done)});
  std::string bytes = length_line('*', words.size());
  for (const word& each : words) {
    bytes += length_line('$', each.text.size()) + each.text + "\r\n";
    if (each.value != 0)
      line_.push_back({std::exchange(bytes, {}), each.value});
  }
  if (!bytes.empty())
    line_.push_back({std::move(bytes), 0});
  world_.all.events.note({10, number_, words.size(), words.back().text.size()});
  if (world_.all.trace)
    say("asks: " + words.front().text + (words.size() > 1 ? " " + words[1].text : "") +
        (words.back().value != 0 ? " version " + std::to_string(words.back().value) : ""));
}

void redis_client::send_some() {
  while (!line_.empty()) {
    auto& [bytes, completes] = line_.front();
    ssize_t sent = ::send(socket_.get(), bytes.data(), part_of(bytes.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN)
        line_.clear(); // receiving will find the end
      return;
    }
    bytes.erase(0, static_cast<size_t>(sent));
    if (completes != 0 && bytes.size() <= line_end_bytes)
      world_.values.sent(std::exchange(completes, 0));
    if (!bytes.empty())
      return;
    line_.pop_front();
  }
  if (breaks_off_)
    disconnect();
}

void redis_client::receive_some() {
  auto area = reader_.write_area();
  ssize_t count = ::recv(socket_.get(), area.data(), part_of(area.size()), MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN)
    return;
  if (count > 0) {
    reader_.commit(static_cast<size_t>(count));
    take_items();
    return;
  }
  if (!world_.all.down && !may_be_closed_)
    broke("the daemon closed its connection");
  disconnect();
}

void redis_client::take_items() {
  while (connected()) {
    auto step = reader_.next();
    if (!step || step->what == resp::reply_step::kind::value) {
      broke("the daemon broke the protocol: " + (step ? "a long value" : step.error().text));
      return disconnect();
    }
    if (step->what == resp::reply_step::kind::more)
      return;
    reply_.push_back({step->type, std::string(step->text), step->number, step->items});
    if (step->last)
      take(std::exchange(reply_, {}));
  }
}

/// What an error may say, whatever was asked.
bool redis_client::is_allowed(const std::string& error) const {
  auto is = [&](const char* code) { return error.starts_with(code); };
  return is("OOM ") || is("BUSY ") || is("LOADING ") || !world_.all.healthy;
}

void redis_client::take(const reply& all) {
  world_.all.events.note({11, number_, all.size(), static_cast<uint64_t>(all.front().number)});
  if (world_.all.trace)
    say("is told: " + (is_error(all) ? all.front().text : std::to_string(all.size()) + " items"));
  ++(is_error(all) ? errors_ : answers_);
  if (asked_.empty()) {
    if (!may_be_closed_)
      broke("a reply that nobody asked for: " + all.front().text);
    return;
  }
  asked of = std::move(asked_.front());
  asked_.pop_front();
  auto now = world_.all.events.now();
  auto since = std::max({of.at, std::exchange(heard_, now), reads_since_});
  if (world_.all.healthy && now - since > world_.patience)
    broke(of.name + " is answered after " + std::to_string((now - since) / std::chrono::seconds(1)) + " s");
  if (of.done)
    of.done(all);
}

// ---- all of them ----

void redis_clients::add(uint64_t seed, uint32_t number, uint32_t deeds_left) {
  all_.push_back(
      std::make_unique<redis_client>(world_, number, number % world_.doors.size(), seed, deeds_left));
  scheduled_.push_back(false);
}

bool redis_clients::finished() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& each) { return each->finished(); });
}

void redis_clients::each(const std::function<void(redis_client&)>& what) {
  for (auto& one : all_)
    what(*one);
}

void redis_clients::look(seeded_random& random, nanoseconds most) {
  std::vector<pollfd> watched;
  for (const auto& client : all_)
    watched.push_back({client->descriptor(), client->wants(), 0});
  if (watched.empty() || ::poll(watched.data(), watched.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0 && watched[i].events != 0 && !scheduled_[i]) {
      scheduled_[i] = true;
      world_.all.events.after(nanoseconds(random.between(0, static_cast<uint64_t>(most.count()))), [this, i] {
        scheduled_[i] = false;
        all_[i]->ready();
        simulated_sockets::touch();
      });
    }
}

} // namespace terrace::simulation
