// PLUGIN LINK: a process of the Python package terrace.remote, which hosts a store. It has a socket to us, and a buffer that both map: it
// is asked for some values at a time, and answers before the next request (remote/plugin_frames.hpp). Each link has a process of its own,
// so a question does not wait for payloads there either, and a plugin needs no threads.
//
// The process may do what it likes. It never sees host memory: payloads are copied to the buffer and out of it, and whoever has asked verifies
// the copy. The buffer is sealed, so that it cannot become shorter, and goes with the process. Whatever is no answer, or
// comes too late, ends the process; so does its own end. It is started again as a server is connected to again.
//
// Payloads are copied `copied_in_turn` at a time, between which others have their turns. The start of a process blocks for about a
// millisecond.
#include "actors/remote/store_link.hpp"

#include "base/child_program.hpp"
#include "base/mapping.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/plugin_frames.hpp"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace terrace::actors {

namespace {

using remote::command_result;
using remote::finished_command;
using remote::plugin_verb;

constexpr size_t copied_in_turn = 1 << 20;               ///< 0.1 to 0.2 ms
constexpr std::chrono::seconds starts_within{30};        ///< Python and what the plugin imports
constexpr uint64_t slowest_plugin_bytes_per_s = 4 << 20; ///< a value has so much more time
constexpr std::string_view no_such_code = " code 127";   ///< env(1) found no such program
/// The log and the status tell the fix.
constexpr const char* missing_python = ": Python cannot be started: install Python 3, or name the "
                                       "interpreter in the environment variable TERRACE_PYTHON";
constexpr const char* missing_package =
    "; its own words are in the log. Install Terrace's Python package for this interpreter "
    "(pip install ./clients/python), or name another one in the environment variable TERRACE_PYTHON";

auto plugin_now() { return std::chrono::steady_clock::now(); }

struct plugin_command {
  enum class kind : uint8_t { exists, read, read_text, write, make, erase, length, none };

  kind what{};
  finished_command result{};
  std::vector<std::string> keys;
  std::array<std::span<std::byte>, 2> places{}; ///< header and payload that are read
  std::string head;                             ///< what is sent, and behind it
  std::span<const std::byte> payload{};
  keep_alive owner{};

  plugin_verb verb() const {
    switch (what) {
      case kind::exists: return plugin_verb::exists;
      case kind::write: return plugin_verb::put;
      case kind::make: return plugin_verb::make;
      case kind::erase: return plugin_verb::remove;
      default: return plugin_verb::get;
    }
  }
  /// Returns the bytes that it takes in the buffer.
  uint64_t bytes() const {
    if (what == kind::read_text)
      return remote::store_commands::text_bytes_max;
    return places[0].size() + places[1].size() + head.size() + payload.size();
  }
};

class plugin_link final : public store_link, public remote::store_commands {
 public:
  explicit plugin_link(callbacks call) : store_link(std::move(call)) {}
  ~plugin_link() override { leave_process(); } // the actor ends, and its operations with what they wait for

  // ---- the link ----

  void connect(const remote::store_address& address, const remote::store_credentials&) override {
    assert(phase_ == phase::down);
    phase_ = phase::greeting;
    failures_ = remote::breaker();
    if (auto started = start(address); !started) {
      refused_ = true; // it does not help to try this often
      return call_.failed(started.error().text);
    }
    expect(starts_within);
    watch(socket_watch, process_.socket());
    watch(exit_watch, process_.pidfd());
  }

  bool ready() const override { return phase_ == phase::ready; }
  bool refused() const override { return refused_; }
  bool reached() const override { return ready(); }
  bool secured() const override { return ready(); }
  std::chrono::microseconds round_trip() override { return std::chrono::microseconds(0); }
  remote::store_commands* server() override { return lives() ? this : nullptr; }

  void pump(keep_alive) override {
    if (phase_ == phase::ready && batch_.empty() && !waiting_.empty())
      begin_batch();
  }

  void end() override {
    if (phase_ == phase::down)
      return;
    phase_ = phase::ending;
    waiting_.clear();
    batch_.clear();
    unfinished_ = 0;
    for (ring_operation& each : operations_)
      if (each.runs)
        call_.cancel(each.id);
    leave_process();
  }

  bool idle() const override {
    return std::ranges::none_of(operations_, [](const ring_operation& each) { return each.runs; });
  }

  void forget() override {
    assert(idle());
    phase_ = phase::down;
    refused_ = suspects_ = false;
    blame_.clear();
    due_.reset();
  }

  void on_io_done(uint64_t tag, int32_t) override {
    const auto which = static_cast<operation>(tag - call_.first_tag);
    operations_[which].runs = false;
    if (!lives())
      return;
    switch (which) {
      case socket_watch: return receive();
      case exit_watch: return on_exit();
      case tick: return on_tick();
      default: return go_on();
    }
  }

  // ---- commands ----

  size_t unfinished() const override { return unfinished_; }

  void exists(uint64_t tag, std::span<const std::string_view> keys) override {
    // The last ones tell most: parts are written in their order, nearly.
    const size_t asked = std::min(keys.size(), remote::plugin_items_max);
    auto& made = add(tag, plugin_command::kind::exists, keys.back());
    made.keys.assign(keys.end() - static_cast<ptrdiff_t>(asked), keys.end());
  }
  void read(uint64_t tag, std::string_view key, std::span<std::byte> header,
            std::span<std::byte> payload) override {
    add(tag, plugin_command::kind::read, key).places = {header, payload};
  }
  void read_text(uint64_t tag, std::string_view key) override {
    add(tag, plugin_command::kind::read_text, key);
  }
  void write(uint64_t tag, std::string_view key, std::span<const std::byte> header,
             std::span<const std::byte> payload, keep_alive owner, std::chrono::seconds) override {
    auto& put = add(tag, plugin_command::kind::write, key);
    put.head.assign(reinterpret_cast<const char*>(header.data()), header.size());
    put.payload = payload;
    put.owner = std::move(owner);
  }
  void write_text(uint64_t tag, std::string_view key, std::string_view text) override {
    add(tag, plugin_command::kind::write, key).head = text;
  }
  /// Two machines may do so at once. Whoever makes a token reads it again.
  void write_text_if_absent(uint64_t tag, std::string_view key, std::string_view text) override {
    add(tag, plugin_command::kind::make, key).head = text;
  }
  void erase(uint64_t tag, std::string_view key) override { add(tag, plugin_command::kind::erase, key); }
  void length(uint64_t tag, std::string_view key) override { add(tag, plugin_command::kind::length, key); }
  void scan(uint64_t tag, std::string_view, std::string_view, size_t) override {
    refuse(tag, "a plugin cannot list its keys; it removes old values by its own bounds");
  }
  void info(uint64_t tag, std::string_view) override {
    refuse(tag, "a plugin has no memory of its own to tell of");
  }

  const std::string& server_name() const override { return server_name_; }
  const std::string& server_version() const override { return server_version_; }

 private:
  enum class phase : uint8_t { down, greeting, ready, ending };
  enum class step : uint8_t { filling, asked, taking }; ///< of the batch
  enum operation : uint8_t { socket_watch, exit_watch, tick, turn, operations };
  struct ring_operation {
    bool runs = false;
    runtime::operation_id id{};
  };
  using command_ptr = std::shared_ptr<plugin_command>;

  /// False: it has ended. Who was told of a failure may also have forgotten it, if the ring had nothing of it.
  bool lives() const { return phase_ == phase::greeting || phase_ == phase::ready; }

  void fail_with(const std::string& why, bool refused = false) {
    refused_ = refused;
    call_.failed("the plugin " + name_ + ": " + why);
  }

  // ---- the process ----

  result<void> start(const remote::store_address& address) {
    name_ = address.plugin;
    const char* chosen = std::getenv("TERRACE_PYTHON");
    const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
    const unique_fd memory(::memfd_create("terrace-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory || ::ftruncate(memory.get(), remote::plugin_buffer_bytes) != 0 ||
        ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return terrace::fail(errc::no_space, std::string("no memory for a plugin: ") + std::strerror(errno));
    auto mapped = mapping::map(memory.get(), remote::plugin_buffer_bytes, true);
    if (!mapped)
      return tl::unexpected(mapped.error());
    // Python may lie on a file system that does not answer, and this thread waits for the start: env(1), which is on the
    // system's own, looks for it.
    auto started = child_program::start(
        "the plugin " + name_, "/usr/bin/env",
        {"env", python, "-m", "terrace.remote", name_, address.plugin_options}, {memory.get()});
    if (!started)
      return tl::unexpected(started.error());
    buffer_ = std::move(*mapped);
    process_ = std::move(*started);
    return {};
  }

  void leave_process() {
    if (process_.socket())
      ::shutdown(process_.socket()->get(), SHUT_RDWR);
    process_ = {};
    buffer_ = {};
  }

  // ---- the ring ----

  void submit(operation which, runtime::io_request request) {
    ring_operation& slot = operations_[which];
    assert(!slot.runs);
    slot.runs = true;
    slot.id = call_.submit(std::move(request), call_.first_tag + which);
  }

  void watch(operation which, const std::shared_ptr<unique_fd>& descriptor) {
    runtime::io_request poll;
    poll.code = runtime::io_code::poll;
    poll.fd = descriptor->get();
    poll.events = POLLIN;
    poll.keep_alive = descriptor;
    submit(which, std::move(poll));
  }

  void wait(operation which, std::chrono::nanoseconds time) {
    if (operations_[which].runs)
      return;
    runtime::io_request wait;
    wait.code = runtime::io_code::timeout;
    wait.after = std::max(time, std::chrono::nanoseconds(0));
    submit(which, std::move(wait));
  }

  /// The answer has so much time.
  void expect(std::chrono::nanoseconds limit) {
    due_ = plugin_now() + limit;
    suspects_ = false;
    wait(tick, std::min<std::chrono::nanoseconds>(limit, call_.silence_max));
  }

  void on_tick() {
    if (!due_)
      return;
    const bool late = *due_ <= plugin_now();
    // If this thread stood still itself, the answer may be here. So it looks twice, and takes what is here in between.
    if (std::exchange(suspects_, late) && late)
      return fail_with("it does not answer");
    wait(tick, std::clamp<std::chrono::nanoseconds>(*due_ - plugin_now(), std::chrono::milliseconds(1),
                                                    call_.silence_max));
  }

  // ---- a batch of commands ----

  plugin_command& add(uint64_t tag, plugin_command::kind what, std::string_view key) {
    assert(ready() && has_room());
    auto next = std::make_shared<plugin_command>();
    next->what = what;
    next->result.tag = tag;
    next->keys.emplace_back(key);
    ++unfinished_;
    waiting_.push_back(next);
    return *next;
  }

  void refuse(uint64_t tag, const char* why) {
    finished_command& told = add(tag, plugin_command::kind::none, {}).result;
    told.result = command_result::refused;
    told.why = {errc::unsupported, why};
  }

  /// Takes what can be asked with the first one.
  void begin_batch() {
    const plugin_verb verb = waiting_.front()->verb();
    const bool asks = waiting_.front()->what != plugin_command::kind::none;
    request_ = remote::plugin_request(verb, ++requests_);
    while (!waiting_.empty()) {
      const plugin_command& next = *waiting_.front();
      if (next.verb() != verb || (next.what != plugin_command::kind::none) != asks)
        break;
      if (asks && !takes(next))
        break;
      batch_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    assert(!batch_.empty());
    step_ = asks ? step::filling : step::taking;
    command_ = item_ = 0;
    copied_ = 0;
    answer_ = {};
    if (asks && !sends())
      return go_on(); // nothing is to be copied
    wait(turn, {});   // what is told comes in a turn of its own
  }

  /// All keys of the command, or none.
  bool takes(const plugin_command& next) {
    if (next.keys.size() == 1)
      return request_.add(next.keys[0], next.bytes());
    remote::plugin_request with = request_;
    for (const std::string& key : next.keys)
      if (!with.add(key, 0))
        return false;
    request_ = std::move(with);
    return true;
  }

  bool sends() const { return request_.verb() == plugin_verb::put || request_.verb() == plugin_verb::make; }

  void go_on() {
    if (batch_.empty() || step_ == step::asked)
      return;
    if (step_ == step::filling) {
      if (sends() && !copy_some())
        return wait(turn, {});
      return ask();
    }
    take_some();
  }

  /// Copies between the buffer and what commands name, all in their order. False: more is to be copied.
  bool copy_some() {
    for (size_t left = copied_in_turn; command_ < batch_.size();) {
      plugin_command& of = *batch_[command_];
      const bool is_moved = sends() || takes_value(of, item_);
      const uint64_t bytes = is_moved ? of.bytes() : 0;
      const size_t some = std::min<uint64_t>(left, bytes - copied_);
      if (some != 0)
        copy(of, buffer_.bytes().subspan(request_.offset(item_) + copied_, some));
      copied_ += some;
      left -= some;
      if (copied_ != bytes)
        return false;
      copied_ = 0;
      item_ += of.keys.size();
      ++command_;
    }
    return true;
  }

  /// `at`: in the buffer, behind what has been copied of this command.
  void copy(plugin_command& of, std::span<std::byte> at) {
    const std::array<std::span<std::byte>, 2> ours =
        sends() ? std::array{std::as_writable_bytes(std::span(of.head)),
                             std::span(const_cast<std::byte*>(of.payload.data()), of.payload.size())}
                : of.places;
    uint64_t begin = copied_;
    for (const auto& place : ours) {
      if (begin >= place.size()) {
        begin -= place.size();
        continue;
      }
      const auto part = place.subspan(begin, std::min<size_t>(place.size() - begin, at.size()));
      if (sends())
        std::memcpy(at.data(), part.data(), part.size());
      else
        std::memcpy(part.data(), at.data(), part.size());
      at = at.subspan(part.size());
      begin = 0;
    }
  }

  bool takes_value(const plugin_command& of, size_t item) const {
    return of.what == plugin_command::kind::read && answer_.numbers[item] == static_cast<int64_t>(of.bytes());
  }

  void ask() {
    step_ = step::asked;
    uint64_t bytes = 0;
    for (const auto& each : batch_)
      bytes += each->bytes();
    expect(call_.silence_max +
           std::chrono::nanoseconds(std::chrono::seconds(bytes)) / slowest_plugin_bytes_per_s);
    const auto frame = request_.frame();
    if (::send(process_.socket()->get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      hang_up(errno == EAGAIN ? "it does not take what it is asked" : "");
  }

  /// Kills the process, whose end comes with its pidfd. `why`: empty, if the end tells the reason.
  void hang_up(const char* why) {
    if (blame_.empty())
      blame_ = why;
    process_.kill();
  }

  void on_exit() {
    std::string how = process_.reap();
    if (blame_.empty())
      blame_ = std::move(how);
    if (phase_ == phase::greeting)
      receive(); // it may have said why before
    if (lives())
      fail_with(blame_ + (ready()                          ? ""
                          : blame_.ends_with(no_such_code) ? missing_python
                                                           : missing_package),
                !ready());
  }

  void receive() {
    std::array<std::byte, remote::plugin_frame_bytes_max> frame;
    const ssize_t bytes =
        ::recv(process_.socket()->get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_TRUNC);
    const bool ended = process_.pid() == 0;
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
      return ended ? void() : watch(socket_watch, process_.socket());
    if (bytes <= 0)
      return hang_up("");
    if (static_cast<size_t>(bytes) > frame.size())
      return fail_with("it sent a message that is too long");
    const auto said = std::span(frame).first(static_cast<size_t>(bytes));
    if (auto taken = phase_ == phase::greeting ? greeted(said, ended) : answered(said); !taken)
      return fail_with("it sent " + taken.error().text);
    if (!lives() || ended)
      return;
    watch(socket_watch, process_.socket());
    go_on();
  }

  result<void> greeted(std::span<const std::byte> frame, bool ended) {
    auto greeting = remote::parse_plugin_greeting(frame);
    if (!greeting)
      return tl::unexpected(greeting.error());
    due_.reset();
    if (greeting->refuses) {
      fail_with(greeting->text, true);
      return {};
    }
    if (ended)
      return {};
    server_name_ = std::move(greeting->name);
    server_version_ = std::move(greeting->version);
    phase_ = phase::ready;
    call_.ready();
    if (lives())
      call_.turned();
    return {};
  }

  result<void> answered(std::span<const std::byte> frame) {
    if (batch_.empty() || step_ != step::asked)
      return terrace::fail(errc::bad_request, "an answer to nothing");
    auto answer = remote::parse_plugin_answer(frame, request_);
    if (!answer)
      return tl::unexpected(answer.error());
    due_.reset();
    answer_ = std::move(*answer);
    const bool fails = answer_.failed ||
                       (!answer_.numbers.empty() && std::ranges::all_of(answer_.numbers, [](int64_t number) {
                         return number == remote::plugin_failed;
                       }));
    if (!fails) {
      failures_.succeeded();
    } else if (failures_.failed(plugin_now(), 0)) {
      fail_with("several requests in a row have failed; the last: " + answer_.text);
      return {};
    }
    step_ = step::taking;
    command_ = item_ = 0;
    copied_ = 0;
    return {};
  }

  /// Copies what came, and tells of the results once all of it is there.
  void take_some() {
    if (request_.items() != 0 && !sends() && !copy_some())
      return wait(turn, {});
    size_t item = 0;
    for (const auto& of : batch_) {
      if (of->what != plugin_command::kind::none)
        judge(*of, item);
      item += of->keys.size();
    }
    const auto told = std::exchange(batch_, {}); // the next ones may be asked for meanwhile
    for (const auto& of : told) {
      --unfinished_;
      call_.finished(of->result);
      if (!lives())
        return;
    }
    call_.turned();
  }

  void judge(plugin_command& of, size_t item) {
    finished_command& told = of.result;
    const auto numbers = std::span(answer_.numbers).subspan(item, of.keys.size());
    const int64_t least = std::ranges::min(numbers);
    told.result = command_result::done;
    if (answer_.failed || least == remote::plugin_failed || least == remote::plugin_no_room) {
      const bool room = !answer_.failed && least == remote::plugin_no_room;
      told.result = command_result::refused;
      told.why = {room ? errc::no_space : errc::busy,
                  "the plugin " + name_ + (room ? " has no room, or may not write: " : " has failed: ") +
                      answer_.text};
      return;
    }
    const auto bytes = static_cast<int64_t>(of.bytes());
    switch (of.what) {
      case plugin_command::kind::exists:
      case plugin_command::kind::make:
        if (least == 0)
          told.result = command_result::absent;
        return;
      case plugin_command::kind::length: told.number = std::max<int64_t>(least, 0); return;
      case plugin_command::kind::read:
        told.number = static_cast<int64_t>(of.places[1].size());
        [[fallthrough]];
      case plugin_command::kind::read_text:
        if (least == remote::plugin_absent)
          told.result = command_result::absent;
        else if (of.what == plugin_command::kind::read ? least != bytes : least > bytes)
          told.result = command_result::wrong_length;
        else if (of.what == plugin_command::kind::read_text)
          told.text.assign(reinterpret_cast<const char*>(buffer_.data() + request_.offset(item)),
                           static_cast<size_t>(least));
        return;
      default: return;
    }
  }

  phase phase_ = phase::down;
  bool refused_ = false;
  bool suspects_ = false; ///< the answer was late when it was looked at last
  std::string blame_;     ///< why it was killed
  std::string name_, server_name_, server_version_;
  child_program process_;
  mapping buffer_;
  remote::breaker failures_;
  std::array<ring_operation, operations> operations_{};
  std::optional<std::chrono::steady_clock::time_point> due_; ///< of the answer that is awaited
  size_t unfinished_ = 0;
  uint64_t requests_ = 0;
  std::deque<command_ptr> waiting_;
  std::vector<command_ptr> batch_; ///< that is asked now
  step step_{};
  remote::plugin_request request_;
  remote::plugin_answer answer_;
  size_t command_ = 0, item_ = 0; ///< of the batch, from which on values are to be copied
  uint64_t copied_ = 0;           ///< of this value
};

} // namespace

std::unique_ptr<store_link> make_plugin_link(store_link::callbacks call) {
  return std::make_unique<plugin_link>(std::move(call));
}

} // namespace terrace::actors
