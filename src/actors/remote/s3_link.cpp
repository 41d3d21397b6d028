// S3 LINK: the requests of the remote store to a bucket, by libcurl. libcurl says which sockets it waits for and until when; the ring of
// the worker waits, and libcurl is told. No thread of ours blocks; names of hosts are resolved by libcurl in threads of its own.
//
// A link has several HTTP connections, because one answers one request at a time: as many as requests are under way, fewer after the
// store has asked for that. The first request, a list, shows whether the store lets us in. Then a request that fails is refused, and
// the link fails only if others would as well: the bucket or the credentials are wrong, the store cannot be reached, says nothing at
// all, or fails several times in a row.
//
// libcurl copies: between its buffers and the memory that a command names, while it is called. So that memory is free once a link has ended.
#include "actors/remote/store_link.hpp"

#include "base/printable.hpp"
#include "base/unique_fd.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/s3_request.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>

namespace terrace::actors {

namespace {

using remote::command_result;
using remote::finished_command;

constexpr size_t requests_max = 32;         ///< at a time
constexpr size_t begun_in_turn = 8;         ///< each takes some 30 us; the next turn comes at once
constexpr size_t error_bytes_max = 4 << 10; ///< of the body of an error
constexpr size_t list_bytes_max = 4 << 20;
constexpr long buffer_bytes = 128 << 10;          ///< that libcurl copies at a time
constexpr uint64_t slowest_bytes_per_s = 4 << 20; ///< a value has so much more time
constexpr std::string_view server_header = "server:";

auto s3_now() { return std::chrono::steady_clock::now(); }

long milliseconds_of(std::chrono::nanoseconds time) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

/// One request, and the command that it is of.
struct s3_transfer {
  enum class kind : uint8_t { greet, exists, read, read_text, write, make, erase, length, scan };

  kind what{};
  finished_command result{};
  remote::s3_request request{};
  std::array<std::span<std::byte>, 2> places{}; ///< what is left of header and payload
  std::string head;                             ///< what is sent, and behind it
  std::span<const std::byte> payload{};
  keep_alive owner{};
  size_t sent = 0;
  std::string body; ///< of a list, a text or an error
  bool too_long = false;
  bool over = false;
  uint64_t heard_before = 0;
  CURL* easy = nullptr;
  curl_slist* lines = nullptr;
  std::array<char, CURL_ERROR_SIZE> why{};

  size_t body_max() const {
    return what == kind::scan || what == kind::greet
               ? list_bytes_max
               : std::max(error_bytes_max, remote::store_commands::text_bytes_max);
  }
  bool sends() const { return what == kind::write || what == kind::make; }
};
using s3_transfer_ptr = std::shared_ptr<s3_transfer>;

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
    address_ = address;
    with_ = with;
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &s3_link::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &s3_link::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(requests_max));
    window_ = remote::request_window(requests_max);
    failures_ = remote::breaker();
    phase_ = phase::greeting;
    auto greeting = std::make_shared<s3_transfer>();
    greeting->what = s3_transfer::kind::greet;
    greeting->request = {.path = remote::s3_path(address_, ""), .query = remote::s3_list_query("", 1, "")};
    waiting_.push_back(std::move(greeting));
    pump(nullptr);
  }

  bool ready() const override { return phase_ == phase::ready; }
  bool refused() const override { return refused_; }
  bool reached() const override { return reached_; }
  bool secured() const override { return reached_; }
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
      begin(std::move(next));
    }
    await_timer();
  }

  void end() override {
    if (phase_ == phase::down)
      return;
    phase_ = phase::ending;
    waiting_.clear();
    ordered_.clear();
    told_.clear();
    unfinished_ = 0;
    while (!active_.empty())
      take_out(*active_.begin()->second);
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
    refused_ = reached_ = false;
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
    add(tag, s3_transfer::kind::read, "GET", key).places = {header, payload};
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

  const std::string& server_name() const override { return server_name_; }
  const std::string& server_version() const override { return server_version_; }

 private:
  enum class phase : uint8_t { down, greeting, ready, ending };
  struct context {
    s3_link* link;
    s3_transfer* transfer;
  };
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
  static size_t on_header(char* bytes, size_t one, size_t count, void* of) noexcept {
    auto& [link, transfer] = *static_cast<context*>(of);
    const std::string_view line(bytes, one * count);
    link->reached_ = true;
    ++link->heard_;
    const auto begins = [&line](std::string_view word) {
      return line.size() > word.size() && ::strncasecmp(line.data(), word.data(), word.size()) == 0;
    };
    if (transfer->what == s3_transfer::kind::greet && begins(server_header))
      link->set_server(line.substr(server_header.size()));
    return line.size();
  }
  static size_t on_body(char* bytes, size_t one, size_t count, void* of) noexcept {
    auto& [link, transfer] = *static_cast<context*>(of);
    ++link->heard_;
    return take_body(*transfer, {bytes, one * count}) ? one * count : 0;
  }
  static size_t on_send(char* into, size_t one, size_t count, void* of) noexcept {
    return give(*static_cast<context*>(of)->transfer, into, one * count);
  }
  static int on_seek(void* of, curl_off_t offset, int origin) {
    if (origin != SEEK_SET || offset < 0)
      return CURL_SEEKFUNC_CANTSEEK;
    static_cast<context*>(of)->transfer->sent = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }
  static CURLcode on_tls(CURL*, void* tls, void* link) {
    static_cast<s3_link*>(link)->with_.tls->lend_to(static_cast<ssl_ctx_st*>(tls));
    return CURLE_OK;
  }

  /// False: it is longer than expected.
  static bool take_body(s3_transfer& of, std::string_view bytes) {
    long status = 0;
    curl_easy_getinfo(of.easy, CURLINFO_RESPONSE_CODE, &status);
    if (of.what == s3_transfer::kind::read && status == 200) {
      for (auto& place : of.places) {
        const size_t count = std::min(place.size(), bytes.size());
        if (count != 0)
          std::memcpy(place.data(), bytes.data(), count);
        place = place.subspan(count);
        bytes.remove_prefix(count);
      }
      of.too_long = !bytes.empty();
      return !of.too_long;
    }
    of.too_long = of.body.size() + bytes.size() > of.body_max();
    if (!of.too_long)
      of.body.append(bytes);
    return !of.too_long;
  }

  static size_t give(s3_transfer& of, char* into, size_t room) {
    size_t given = 0;
    const std::array<std::span<const char>, 2> all{
        std::span<const char>(of.head),
        std::span<const char>(reinterpret_cast<const char*>(of.payload.data()), of.payload.size())};
    size_t begin = 0;
    for (const auto& one : all) {
      if (of.sent >= begin && of.sent < begin + one.size() && given < room) {
        const size_t count = std::min(room - given, begin + one.size() - of.sent);
        std::memcpy(into + given, one.data() + (of.sent - begin), count);
        of.sent += count;
        given += count;
      }
      begin += one.size();
    }
    return given;
  }

  void set_server(std::string_view said) {
    while (!said.empty() && std::isspace(static_cast<unsigned char>(said.front())) != 0)
      said.remove_prefix(1);
    const auto end = said.find_first_of("\r\n /(");
    server_name_ = printable(said.substr(0, end));
    const bool versioned = end != std::string_view::npos && said[end] == '/';
    const auto rest = versioned ? said.substr(end + 1) : std::string_view();
    server_version_ = printable(rest.substr(0, rest.find_first_of("\r\n (")));
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

  void watch(curl_socket_t socket, watched_socket& watched) {
    watched.sequence = 0;
    if (watched.events == 0 || phase_ == phase::ending)
      return;
    runtime::io_request poll;
    poll.code = runtime::io_code::poll;
    poll.fd = watched.own->get();
    poll.events = watched.events;
    poll.keep_alive = watched.own;
    watched.sequence = submit(std::move(poll), {.socket = socket});
    watched.id = operations_.at(watched.sequence).id;
  }

  void await_timer() {
    const auto covers = [this](const auto& each) {
      return each.second.socket == CURL_SOCKET_BAD && each.second.until <= *due_;
    };
    if (!due_ || phase_ == phase::ending || std::ranges::any_of(operations_, covers))
      return;
    runtime::io_request wait;
    wait.code = runtime::io_code::timeout;
    wait.after = std::max<std::chrono::nanoseconds>(*due_ - s3_now(), std::chrono::nanoseconds(0));
    submit(std::move(wait), {.until = *due_});
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
    next->request.path = remote::s3_path(address_, remote::bucket_name_of(key));
    ++unfinished_;
    if (tag == 0)
      ordered_.push_back(next);
    waiting_.push_back(next);
    return *next;
  }

  void begin(s3_transfer_ptr next) {
    context* of = &contexts_.emplace_back(context{this, next.get()});
    s3_transfer& made = *next;
    made.heard_before = heard_;
    made.sent = 0;
    made.easy = curl_easy_init();
    CURL* easy = made.easy;
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    for (const std::string& line : remote::s3_headers(address_, made.request, with_.login, now))
      made.lines = curl_slist_append(made.lines, line.c_str());
    made.lines = curl_slist_append(made.lines, "Expect:"); // it would cost a round trip for every value
    const uint64_t bytes =
        made.places[0].size() + made.places[1].size() + made.head.size() + made.payload.size();
    const auto limit =
        made.what == s3_transfer::kind::greet
            ? greets_within
            : call_.silence_max + std::chrono::nanoseconds(std::chrono::seconds(bytes)) / slowest_bytes_per_s;
    curl_easy_setopt(easy, CURLOPT_URL, remote::s3_url(address_, made.request).c_str());
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // that of the environment is not for us
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // nobody waits for a name that is being resolved
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(limit));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds_of(limit));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, made.lines);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, made.why.data());
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &made);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &s3_link::on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, of);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &s3_link::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, of);
    if (made.what == s3_transfer::kind::read)
      curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, buffer_bytes);
    const std::string_view method = made.request.method;
    if (method == "HEAD")
      curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (method == "DELETE")
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, made.request.method);
    if (made.sends()) {
      curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, buffer_bytes);
      curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                       static_cast<curl_off_t>(made.head.size() + made.payload.size()));
      curl_easy_setopt(easy, CURLOPT_READFUNCTION, &s3_link::on_send);
      curl_easy_setopt(easy, CURLOPT_READDATA, of);
      curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &s3_link::on_seek);
      curl_easy_setopt(easy, CURLOPT_SEEKDATA, of);
    }
    if (with_.tls) { // libcurl would read all certificates of the system for each connection
      curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, &s3_link::on_tls);
      curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, this);
    }
    active_.emplace(&made, std::move(next));
    curl_multi_add_handle(multi_, easy);
  }

  /// The request ends, whether libcurl has done it or not.
  s3_transfer_ptr take_out(s3_transfer& of) {
    curl_multi_remove_handle(multi_, of.easy);
    curl_easy_cleanup(std::exchange(of.easy, nullptr));
    curl_slist_free_all(std::exchange(of.lines, nullptr));
    std::erase_if(contexts_, [&of](const context& each) { return each.transfer == &of; });
    auto taken = std::move(active_.at(&of));
    active_.erase(&of);
    return taken;
  }

  /// All are taken from libcurl first, because whoever is told of a result may ask for more, or end the link.
  void take_results() {
    struct ended {
      s3_transfer_ptr of;
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
      s3_transfer* of = nullptr;
      ended one{.how = how, .status = 0, .length = 0};
      curl_off_t first_byte = 0, sent = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &of);
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &one.status);
      curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &one.length);
      curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
      curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
      if (const std::chrono::microseconds took(first_byte - sent);
          how == CURLE_OK && !of->sends() && took.count() > 0 &&
          (round_trip_.count() == 0 || took < round_trip_))
        round_trip_ = took;
      one.of = take_out(*of);
      all.push_back(std::move(one));
    }
    for (const ended& one : all)
      if (lives())
        finish(one.of, one.how, one.status, one.length);
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

  void finish(const s3_transfer_ptr& of, CURLcode how, long status, curl_off_t length) {
    if (how != CURLE_OK && !(how == CURLE_WRITE_ERROR && of->too_long))
      return interrupted(of, how);
    const auto verdict = remote::meaning_of_answer(status, of->body);
    if (verdict.slow)
      window_.too_many();
    else
      window_.succeeded();
    if (!verdict.fails)
      failures_.succeeded();
    const bool in_trouble = verdict.fails && failures_.failed(s3_now(), 0);
    if (of->what == s3_transfer::kind::greet)
      return greeted(*of, verdict);
    if (verdict.ends || in_trouble) {
      refused_ = verdict.ends;
      return fail(verdict.why.text);
    }
    if (of->what == s3_transfer::kind::make && status == 501 && !of->request.headers.empty()) {
      of->request.headers.clear(); // it may know no conditions
      of->body.clear();
      of->too_long = false;
      waiting_.push_front(of);
      return;
    }
    of->result.result = verdict.result;
    of->result.why = verdict.why;
    if (verdict.result == command_result::done)
      fill(*of, length);
    else if (verdict.result == command_result::absent && of->what == s3_transfer::kind::length)
      of->result.result = command_result::done;
    tell(of);
  }

  /// No request would be answered otherwise: nobody is there, or TLS does not fit.
  void interrupted(const s3_transfer_ptr& of, CURLcode how) {
    const std::string said = of->why[0] != '\0' ? of->why.data() : curl_easy_strerror(how);
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
    if (how == CURLE_OPERATION_TIMEDOUT && heard_ == of->heard_before)
      return fail("it does not answer");
    const std::string why = "a request was interrupted: " + said;
    if (of->what == s3_transfer::kind::greet || failures_.failed(s3_now(), 0))
      return fail(why);
    of->result.result = command_result::refused;
    of->result.why = {errc::busy, why};
    tell(of);
  }

  void greeted(const s3_transfer& of, const remote::s3_verdict& verdict) {
    error why = verdict.why;
    if (verdict.result == command_result::absent)
      why = {errc::unsupported, "it has no such bucket, or is no S3 store: check the name in address"};
    if (verdict.result == command_result::done)
      if (auto list = remote::parse_s3_list(of.body); !list)
        why = list.error();
    if (why.code != errc::ok) {
      refused_ = why.code != errc::busy;
      return fail(why.text);
    }
    phase_ = phase::ready;
    call_.ready();
  }

  static void fill(s3_transfer& of, curl_off_t length) {
    const bool is_text = of.what == s3_transfer::kind::read_text;
    if (of.too_long || !of.places[0].empty() || !of.places[1].empty() ||
        (is_text && of.body.size() > remote::store_commands::text_bytes_max)) {
      of.result.result = command_result::wrong_length;
      return;
    }
    if (of.what == s3_transfer::kind::length)
      of.result.number = std::max<curl_off_t>(length, 0);
    if (is_text)
      of.result.text = std::move(of.body);
    if (of.what != s3_transfer::kind::scan)
      return;
    auto list = remote::parse_s3_list(of.body);
    if (!list) {
      of.result.result = command_result::refused;
      of.result.why = list.error();
      return;
    }
    for (const std::string& name : list->names)
      of.result.keys.push_back(remote::key_of_bucket_name(name));
    of.result.text = list->next.empty() ? "0" : list->next;
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
  bool refused_ = false, reached_ = false;
  remote::store_address address_;
  remote::store_credentials with_;
  CURLM* multi_ = nullptr;
  std::string server_name_, server_version_;
  remote::request_window window_{requests_max};
  remote::breaker failures_;
  std::chrono::microseconds round_trip_{0};
  uint64_t heard_ = 0; ///< times that the store has said or taken something
  size_t unfinished_ = 0;
  std::deque<s3_transfer_ptr> waiting_;
  std::map<s3_transfer*, s3_transfer_ptr> active_;
  std::list<context> contexts_;                              ///< of the active ones
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
