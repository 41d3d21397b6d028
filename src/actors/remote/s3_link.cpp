// S3 LINK: the requests of the remote store to a bucket, by libcurl. libcurl says which sockets it waits for and until when; the ring of
// the worker waits, and libcurl is told. No thread of ours blocks; names of hosts are resolved by libcurl in threads of its own.
//
// A link has several HTTP connections, because one answers one request at a time: as many as requests are under way, fewer after the
// store has asked for that. The first request, a list, shows whether the store lets us in. Then a request that fails is refused, and
// the link fails only if others would as well: the bucket or the credentials are wrong, the store cannot be reached, says nothing at
// all, or fails several times in a row.
//
// A request whose connection is lost is sent once more, after a short random pause, within the time that it has. One that the store
// refuses for the moment (429, 5xx) is sent up to twice more.
//
// A question or a read that the store does not begin to answer as soon as others is sent once more, on another connection, and the first
// answer counts (remote/hedging.hpp, s3_attempt.hpp). Both together have the time of one request. Requests that wait go first, and a
// store that has asked for fewer requests, or fails, is not asked twice.
#include "actors/remote/s3_attempt.hpp"
#include "actors/remote/store_link.hpp"
#include "base/random_id.hpp"
#include "base/unique_fd.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/hedging.hpp"
#include "remote/s3_request.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>

namespace terrace::actors {

namespace {

using remote::command_result;
using remote::finished_command;

constexpr size_t requests_max = 32;                         ///< at a time
constexpr std::chrono::milliseconds before_another_try{50}; ///< at most
constexpr size_t begun_in_turn = 8;               ///< each takes some 30 us; the next turn comes at once
constexpr uint64_t slowest_bytes_per_s = 4 << 20; ///< a value has so much more time

auto s3_now() { return std::chrono::steady_clock::now(); }

class s3_link final : public store_link, public remote::store_commands {
 public:
  explicit s3_link(callbacks call) : store_link(std::move(call)) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }
  ~s3_link() override {
    call_.cancel = [](runtime::operation_id) {}; // the actor ends, and its operations with their sockets
    for (const auto& [socket, watched] : sockets_)
      ::shutdown(watched.own->get(), SHUT_RDWR);
    end();
    curl_multi_cleanup(multi_);
  }

  // ---- the link ----

  void connect(const remote::store_address& address, const remote::store_credentials& with) override {
    assert(phase_ == phase::down);
    shared_.address = address;
    shared_.with = with;
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &s3_link::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &s3_link::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(requests_max));
    window_ = remote::request_window(requests_max);
    failures_ = remote::breaker();
    hedging_ = remote::hedging();
    phase_ = phase::greeting;
    auto greeting = std::make_shared<s3_transfer>();
    greeting->what = s3_transfer::kind::greet;
    greeting->request = {.path = remote::s3_path(address, ""), .query = remote::s3_list_query("", 1, "")};
    waiting_.push_back(std::move(greeting));
    pump(nullptr);
  }

  bool ready() const override { return phase_ == phase::ready; }
  bool refused() const override { return refused_; }
  bool reached() const override { return shared_.reached; }
  bool secured() const override { return shared_.reached; }
  std::chrono::microseconds round_trip() override { return round_trip_; }
  remote::store_commands* server() override {
    return phase_ == phase::greeting || phase_ == phase::ready ? this : nullptr;
  }

  void pump(keep_alive) override {
    for (size_t left = begun_in_turn; left != 0 && multi_ != nullptr && phase_ != phase::ending &&
                                      !waiting_.empty() && window_.has_room(active_.size());
         --left) {
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      begin(next);
    }
    await_timer();
  }

  void end() override {
    if (phase_ == phase::down)
      return;
    phase_ = phase::ending;
    waiting_.clear();
    retries_.clear();
    ordered_.clear();
    told_.clear();
    unfinished_ = 0;
    while (!active_.empty())
      take_out(active_.begin()->first);
    for (const auto& [sequence, operation] : operations_)
      call_.cancel(operation.id);
  }

  bool idle() const override { return operations_.empty(); }

  void forget() override {
    assert(idle());
    curl_multi_cleanup(multi_); // which may name sockets
    multi_ = nullptr;
    sockets_.clear();
    due_.reset();
    phase_ = phase::down;
    refused_ = silent_ = shared_.reached = false;
    round_trip_ = {};
  }

  void on_io_done(uint64_t tag, int32_t result) override {
    auto done = operations_.find(tag - call_.first_tag);
    if (done == operations_.end())
      return;
    const ring_operation operation = done->second;
    const uint64_t sequence = done->first;
    operations_.erase(done);
    if (phase_ != phase::greeting && phase_ != phase::ready)
      return;
    if (operation.socket == CURL_SOCKET_BAD) {
      if (due_ && *due_ <= s3_now()) {
        due_.reset();
        act(CURL_SOCKET_TIMEOUT, 0);
      }
      begin_retries();
      hedge();
    } else if (auto known = sockets_.find(operation.socket);
               known != sockets_.end() && known->second.sequence == sequence) {
      known->second.sequence = 0;
      int events = result < 0 || (result & POLLERR) != 0 ? CURL_CSELECT_ERR : 0;
      if (result > 0)
        events |= ((result & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                  ((result & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0);
      act(operation.socket, events);
      if (auto still = sockets_.find(operation.socket);
          still != sockets_.end() && still->second.sequence == 0)
        watch(operation.socket, still->second);
    }
    take_results();
    if (phase_ == phase::greeting || phase_ == phase::ready)
      call_.turned();
  }

  // ---- commands ----

  size_t unfinished() const override { return unfinished_; }

  /// Parts are written in their order, nearly: whether the last is there is a good guess, and costs one request.
  void exists(uint64_t tag, std::span<const std::string_view> keys) override {
    add(tag, s3_transfer::kind::exists, "HEAD", keys.back());
  }
  void read(uint64_t tag, std::string_view key, std::span<std::byte> header,
            std::span<std::byte> payload) override {
    add(tag, s3_transfer::kind::read, "GET", key).memory = {header, payload};
  }
  void read_text(uint64_t tag, std::string_view key) override {
    add(tag, s3_transfer::kind::read_text, "GET", key);
  }
  void write(uint64_t tag, std::string_view key, std::span<const std::byte> header,
             std::span<const std::byte> payload, keep_alive owner, std::chrono::seconds) override {
    auto& put = add(tag, s3_transfer::kind::write, "PUT", key);
    put.head.assign(reinterpret_cast<const char*>(header.data()), header.size());
    put.payload = payload;
    put.owner = std::move(owner);
  }
  void write_text(uint64_t tag, std::string_view key, std::string_view text) override {
    add(tag, s3_transfer::kind::write, "PUT", key).head = text;
  }
  /// A store that ignores the condition replaces what is there; whoever makes a token reads it again.
  void write_text_if_absent(uint64_t tag, std::string_view key, std::string_view text) override {
    auto& put = add(tag, s3_transfer::kind::make, "PUT", key);
    put.head = text;
    put.request.headers.emplace_back("if-none-match", "*");
  }
  void erase(uint64_t tag, std::string_view key) override {
    add(tag, s3_transfer::kind::erase, "DELETE", key);
  }
  void length(uint64_t tag, std::string_view key) override {
    add(tag, s3_transfer::kind::length, "HEAD", key);
  }
  void scan(uint64_t tag, std::string_view cursor, std::string_view pattern, size_t count) override {
    auto& list = add(tag, s3_transfer::kind::scan, "GET", "");
    auto prefix = pattern.substr(0, pattern.find('*'));
    if (constexpr std::string_view values = "t1/"; prefix.ends_with(values))
      prefix.remove_suffix(values.size()); // the names of values have two digits in front of it
    list.request.query = remote::s3_list_query(prefix, count, cursor == "0" ? std::string_view() : cursor);
  }
  void info(uint64_t tag, std::string_view) override {
    auto said = std::make_shared<s3_transfer>();
    said->result = {.tag = tag,
                    .result = command_result::refused,
                    .why = {errc::unsupported, "a bucket has no memory of its own to tell of"}};
    said->over = true;
    ++unfinished_;
    if (tag == 0)
      ordered_.push_back(said);
    told_.push_back(std::move(said));
    due_ = s3_now();
    await_timer();
  }

  const std::string& server_name() const override { return shared_.server_name; }
  const std::string& server_version() const override { return shared_.server_version; }

 private:
  enum class phase : uint8_t { down, greeting, ready, ending };
  struct ring_operation {
    curl_socket_t socket = CURL_SOCKET_BAD; ///< that is polled; bad: it is a timeout
    std::chrono::steady_clock::time_point until{};
    runtime::operation_id id{};
  };
  struct watched_socket {
    std::shared_ptr<unique_fd> own; ///< open until the kernel no longer polls it
    uint32_t events = 0;
    uint64_t sequence = 0; ///< of the poll; 0: there is none
    runtime::operation_id id{};
  };

  // ---- what libcurl asks of us ----

  // An exception cannot pass libcurl: without memory the program ends.

  static int on_socket(CURL*, curl_socket_t socket, int what, void* link, void*) noexcept {
    return static_cast<s3_link*>(link)->set_events(socket, what) ? 0 : -1;
  }
  static int on_timer(CURLM*, long milliseconds, void* link) noexcept {
    auto& due = static_cast<s3_link*>(link)->due_;
    due = milliseconds < 0 ? std::nullopt : std::optional(s3_now() + std::chrono::milliseconds(milliseconds));
    return 0;
  }
  // ---- the ring ----

  /// Another sequence for each operation, so that completions of former ones go to nobody.
  uint64_t submit(runtime::io_request request, ring_operation operation) {
    do
      next_sequence_ = next_sequence_ % (tags - 1) + 1;
    while (operations_.contains(next_sequence_));
    operation.id = call_.submit(std::move(request), call_.first_tag + next_sequence_);
    operations_.emplace(next_sequence_, operation);
    return next_sequence_;
  }

  /// libcurl may close a socket that the ring still polls, so the ring gets a descriptor of its own.
  bool set_events(curl_socket_t socket, int what) {
    auto known = sockets_.find(socket);
    if (known != sockets_.end() && known->second.sequence != 0)
      call_.cancel(known->second.id);
    if (what == CURL_POLL_REMOVE) {
      if (known != sockets_.end())
        sockets_.erase(known);
      return true;
    }
    watched_socket& watched = sockets_[socket];
    if (!watched.own)
      watched.own = std::make_shared<unique_fd>(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (watched.own->get() < 0) { // no descriptor is left
      sockets_.erase(socket);
      return false;
    }
    watched.events =
        ((what & CURL_POLL_IN) != 0 ? POLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? POLLOUT : 0U);
    watch(socket, watched);
    return true;
  }

  /// A store that sends the head of an answer and its end apart, and waits in between until we have acknowledged the head (Nagle's
  /// algorithm), would wait for the 40 ms by which the kernel delays that. radosgw does so by default, with every token. The kernel
  /// goes back to delays by itself (tcp(7), TCP_QUICKACK).
  static void acknowledge_at_once(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }

  void watch(curl_socket_t socket, watched_socket& watched) {
    watched.sequence = 0;
    if (watched.events == 0 || phase_ == phase::ending)
      return;
    if ((watched.events & POLLIN) != 0)
      acknowledge_at_once(watched.own->get());
    runtime::io_request poll;
    poll.code = runtime::io_code::poll;
    poll.fd = watched.own->get();
    poll.events = watched.events;
    poll.keep_alive = watched.own;
    watched.sequence = submit(std::move(poll), {.socket = socket});
    watched.id = operations_.at(watched.sequence).id;
  }

  void await_timer() {
    const auto next = next_timer();
    const auto covers = [&next](const auto& each) {
      return each.second.socket == CURL_SOCKET_BAD && each.second.until <= *next;
    };
    if (!next || phase_ == phase::ending || std::ranges::any_of(operations_, covers))
      return;
    runtime::io_request wait;
    wait.code = runtime::io_code::timeout;
    wait.after = std::max<std::chrono::nanoseconds>(*next - s3_now(), std::chrono::nanoseconds(0));
    submit(std::move(wait), {.until = *next});
  }

  /// Returns when libcurl wants to be called, or the next request is to be sent again.
  std::optional<std::chrono::steady_clock::time_point> next_timer() const {
    auto next = due_;
    if (!retries_.empty() && (!next || retries_.begin()->first < *next))
      next = retries_.begin()->first;
    for (const auto& [attempt, owned] : active_)
      if (const auto& at = attempt->of()->hedge_at; at && (!next || *at < *next))
        next = at;
    return next;
  }

  void act(curl_socket_t socket, int events) {
    int running = 0;
    curl_multi_socket_action(multi_, socket, events, &running);
  }

  // ---- requests ----

  s3_transfer& add(uint64_t tag, s3_transfer::kind what, const char* method, std::string_view key) {
    assert(ready() && has_room());
    auto next = std::make_shared<s3_transfer>();
    next->what = what;
    next->result.tag = tag;
    next->request.method = method;
    next->request.path = remote::s3_path(shared_.address, remote::bucket_name_of(key));
    ++unfinished_;
    if (tag == 0)
      ordered_.push_back(next);
    waiting_.push_back(next);
    return *next;
  }

  /// Sends its request, or sends it once more.
  void begin(const s3_transfer_ptr& of) {
    const auto now = s3_now();
    const bool second = of->attempts != 0;
    if (!second && of->again == 0) {
      of->begun_at = now;
      of->heard_before = shared_.heard;
      of->limit = of->what == s3_transfer::kind::greet
                      ? greets_within
                      : call_.silence_max +
                            std::chrono::nanoseconds(std::chrono::seconds(of->bytes())) / slowest_bytes_per_s;
      if (const auto kind = of->hedged_as())
        of->hedge_at = hedging_.began(*kind, now, of->limit);
    }
    ++of->attempts;
    auto made = std::make_unique<s3_attempt>(shared_, of, of->begun_at + of->limit - now, second);
    s3_attempt* attempt = made.get();
    active_.emplace(attempt, std::move(made));
    curl_multi_add_handle(multi_, attempt->easy());
  }

  /// Sends once more what should have been answered by now.
  void hedge() {
    const auto now = s3_now();
    std::vector<s3_transfer_ptr> late;
    for (const auto& [attempt, owned] : active_)
      if (auto& at = attempt->of()->hedge_at; at && *at <= now) {
        at.reset();
        late.push_back(attempt->of());
      }
    for (const s3_transfer_ptr& each : late)
      if (may_hedge()) {
        begin(each);
        if (call_.hedged)
          call_.hedged(false);
      }
  }

  bool may_hedge() {
    return waiting_.empty() && window_.is_largest() && window_.has_room(active_.size()) &&
           failures_.now() == remote::breaker::state::closed && hedging_.take();
  }

  /// The request ends, whether libcurl has done it or not.
  std::unique_ptr<s3_attempt> take_out(s3_attempt* attempt) {
    curl_multi_remove_handle(multi_, attempt->easy());
    auto taken = std::move(active_.at(attempt));
    active_.erase(attempt);
    return taken;
  }

  /// Nothing accesses its memory any more.
  void end_attempts(const s3_transfer& of) {
    for (auto each = active_.begin(); each != active_.end();) {
      s3_attempt* attempt = each++->first;
      if (attempt->of().get() == &of)
        take_out(attempt);
    }
  }

  /// All are taken from libcurl first, because whoever is told of a result may ask for more, or end the link.
  void take_results() {
    struct ended {
      std::unique_ptr<s3_attempt> by;
      CURLcode how;
      long status;
      curl_off_t length;
    };
    std::vector<ended> all;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE)
        continue;
      CURL* easy = message->easy_handle;
      const CURLcode how = message->data.result;
      s3_attempt* by = nullptr;
      ended one{.how = how, .status = 0, .length = 0};
      curl_off_t first_byte = 0, sent = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &by);
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &one.status);
      curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &one.length);
      curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
      curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
      if (const std::chrono::microseconds took(first_byte - sent);
          how == CURLE_OK && !by->of()->sends() && took.count() > 0 &&
          (round_trip_.count() == 0 || took < round_trip_))
        round_trip_ = took;
      one.by = take_out(by);
      all.push_back(std::move(one));
    }
    for (const ended& one : all)
      if (lives())
        finish(*one.by, one.how, one.status, one.length);
    while (lives() && !told_.empty()) {
      auto next = std::move(told_.front());
      told_.pop_front();
      tell(next);
    }
  }

  /// False: it has ended. Who was told of a failure may also have forgotten it, if the ring had nothing of it.
  bool lives() const { return phase_ == phase::greeting || phase_ == phase::ready; }

  void fail(const std::string& why) {
    if (lives())
      call_.failed(why);
  }

  void finish(s3_attempt& by, CURLcode how, long status, curl_off_t length) {
    const s3_transfer_ptr& of = by.of();
    if (of->over)
      return; // the other attempt has answered
    --of->attempts;
    if (how != CURLE_OK && !(how == CURLE_WRITE_ERROR && by.too_long()))
      return interrupted(by, how);
    const auto verdict = remote::meaning_of_answer(status, by.body());
    const auto pause = verdict.slow || verdict.fails ? pause_after_refusal(by) : std::nullopt;
    if (verdict.slow)
      window_.too_many();
    else
      window_.succeeded();
    if (!verdict.slow && !verdict.fails)
      failures_.succeeded();
    const bool fails = verdict.fails || (verdict.slow && !pause); // or it is slow however often it is asked
    const bool in_trouble = fails && failures_.failed(s3_now(), 0);
    if (of->what == s3_transfer::kind::greet)
      return greeted(by, verdict);
    if (verdict.ends || in_trouble) {
      refused_ = verdict.ends;
      return fail(verdict.why.text);
    }
    if (pause)
      return try_again(by, *pause);
    if (of->what == s3_transfer::kind::make && status == 501 && !of->request.headers.empty()) {
      of->request.headers.clear(); // it may know no conditions
      waiting_.push_front(of);
      return;
    }
    finished_command told{.tag = of->result.tag, .result = verdict.result, .why = verdict.why};
    if (verdict.result == command_result::done)
      fill(told, by, length);
    else if (verdict.result == command_result::absent && of->what == s3_transfer::kind::length)
      told.result = command_result::done;
    settle(by, std::move(told));
  }

  /// No request would be answered otherwise: nobody is there, or TLS does not fit.
  void interrupted(s3_attempt& by, CURLcode how) {
    const s3_transfer_ptr& of = by.of();
    const std::string said = by.why(how);
    switch (how) {
      case CURLE_COULDNT_CONNECT:
      case CURLE_COULDNT_RESOLVE_HOST: return fail("it cannot be reached: " + said);
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        refused_ = true;
        return fail("TLS fails: " + said +
                    "; check that the store speaks TLS at this port, the name in address, tls_ca_file and "
                    "tls_client_file");
      default: break;
    }
    const bool late = how == CURLE_OPERATION_TIMEDOUT;
    silent_ = late && shared_.heard == of->heard_before;
    if (silent_)
      return fail("it does not answer");
    const std::string why = "a request was interrupted: " + said;
    if (of->what == s3_transfer::kind::greet || failures_.failed(s3_now(), 0))
      return fail(why);
    if (!late && of->again == 0 && may_try_again(*of, before_another_try)) {
      constexpr auto most = static_cast<uint64_t>(std::chrono::microseconds(before_another_try).count());
      return try_again(by, std::chrono::microseconds(random_() % most));
    }
    if (late) {
      end_attempts(*of); // the time of all of them is over
      of->attempts = 0;
      if (const auto kind = of->hedged_as(); kind && !by.first_byte_at())
        hedging_.answered(*kind, s3_now() - of->begun_at);
    }
    settle(by, {.tag = of->result.tag, .result = command_result::refused, .why = {errc::busy, why}});
  }

  /// The attempt is over, and there is time for another one after the pause.
  static bool may_try_again(const s3_transfer& of, std::chrono::nanoseconds pause) {
    return of.attempts == 0 && s3_now() + pause < of.begun_at + of.limit;
  }

  /// nullopt: the request is not sent again.
  std::optional<std::chrono::milliseconds> pause_after_refusal(const s3_attempt& by) {
    const s3_transfer& of = *by.of();
    const auto pause = remote::pause_after_refusal(of.again, by.retry_after(), random_());
    const bool again = pause && of.what != s3_transfer::kind::greet && may_try_again(of, *pause);
    return again ? pause : std::nullopt;
  }

  /// Many requests that a gateway has lost or refused at once do not come back at once. Each changes the store as if it were sent once.
  void try_again(s3_attempt& by, std::chrono::nanoseconds pause) {
    const s3_transfer_ptr& of = by.of();
    by.leave_memory();
    ++of->again;
    retries_.emplace(s3_now() + pause, of);
    if (call_.retried)
      call_.retried(of->sends() || of->what == s3_transfer::kind::erase);
  }

  void begin_retries() {
    for (const auto now = s3_now(); !retries_.empty() && retries_.begin()->first <= now;
         retries_.erase(retries_.begin()))
      waiting_.push_front(retries_.begin()->second);
  }

  /// The command is over, unless this attempt has failed and the other one may answer.
  void settle(s3_attempt& by, finished_command told) {
    const s3_transfer_ptr& of = by.of();
    const bool answered = told.result == command_result::done || told.result == command_result::absent;
    if (!answered && of->attempts != 0) {
      by.leave_memory();
      for (const auto& [other, owned] : active_)
        if (other->of() == of)
          other->go_on();
      return;
    }
    end_attempts(*of);
    if (const auto kind = of->hedged_as(); kind && answered && by.first_byte_at())
      hedging_.answered(*kind, *by.first_byte_at() - of->begun_at);
    if (answered && of->what == s3_transfer::kind::read && by.first_byte_at() && call_.received)
      call_.received(CURL_MAX_WRITE_SIZE, *by.first_byte_at());
    if (answered && by.second() && call_.hedged)
      call_.hedged(true);
    of->result = std::move(told);
    tell(of);
  }

  void greeted(const s3_attempt& by, const remote::s3_verdict& verdict) {
    error why = verdict.why;
    if (verdict.result == command_result::absent)
      why = {errc::unsupported, "it has no such bucket, or is no S3 store: check the name in address"};
    if (verdict.result == command_result::done)
      if (auto list = remote::parse_s3_list(by.body()); !list)
        why = list.error();
    if (why.code != errc::ok) {
      refused_ = why.code != errc::busy;
      return fail(why.text);
    }
    phase_ = phase::ready;
    call_.ready();
  }

  static void fill(finished_command& told, const s3_attempt& by, curl_off_t length) {
    using kind = s3_transfer::kind;
    const kind what = by.of()->what;
    const bool is_text = what == kind::read_text;
    if (by.too_long() || (what == kind::read && !by.has_received_value()) ||
        (is_text && by.body().size() > remote::store_commands::text_bytes_max)) {
      told.result = command_result::wrong_length;
      return;
    }
    if (what == kind::length)
      told.number = std::max<curl_off_t>(length, 0);
    if (what == kind::read)
      told.number = static_cast<int64_t>(by.of()->memory[1].size() - by.of()->missing[1].size());
    if (is_text)
      told.text = by.body();
    if (what != kind::scan)
      return;
    auto list = remote::parse_s3_list(by.body());
    if (!list) {
      told.result = command_result::refused;
      told.why = list.error();
      return;
    }
    for (const std::string& name : list->names)
      told.keys.push_back(remote::key_of_bucket_name(name));
    told.text = list->next.empty() ? "0" : list->next;
  }

  /// Tells of a request that is over; those with tag 0 are told of in their order.
  void tell(const s3_transfer_ptr& of) {
    of->over = true;
    if (of->result.tag != 0) {
      --unfinished_;
      return call_.finished(of->result);
    }
    while (lives() && !ordered_.empty() && ordered_.front()->over) {
      auto next = std::move(ordered_.front());
      ordered_.pop_front();
      --unfinished_;
      call_.finished(next->result);
    }
  }

  phase phase_ = phase::down;
  bool refused_ = false;
  s3_conversation shared_;
  CURLM* multi_ = nullptr;
  remote::request_window window_{requests_max};
  remote::breaker failures_;
  remote::hedging hedging_;
  std::chrono::microseconds round_trip_{0};
  size_t unfinished_ = 0;
  std::deque<s3_transfer_ptr> waiting_;
  std::multimap<std::chrono::steady_clock::time_point, s3_transfer_ptr>
      retries_; ///< when they wait no longer
  std::mt19937_64 random_{random_entry_key_salt().first};
  std::map<s3_attempt*, std::unique_ptr<s3_attempt>> active_;
  std::deque<s3_transfer_ptr> ordered_;                      ///< with tag 0, in their order
  std::deque<s3_transfer_ptr> told_;                         ///< answered without the store
  std::optional<std::chrono::steady_clock::time_point> due_; ///< libcurl wants to be called
  std::map<curl_socket_t, watched_socket> sockets_;
  uint64_t next_sequence_ = 0;
  std::map<uint64_t, ring_operation> operations_;
};

} // namespace

std::unique_ptr<store_link> make_s3_link(store_link::callbacks call) {
  return std::make_unique<s3_link>(std::move(call));
}

} // namespace terrace::actors
