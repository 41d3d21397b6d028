#include "actors/remote/s3_attempt.hpp"

#include "base/printable.hpp"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace terrace::actors {

namespace {

constexpr size_t error_bytes_max = 4 << 10; ///< of the body of an error
constexpr size_t list_bytes_max = 4 << 20;
constexpr long buffer_bytes = 128 << 10; ///< that libcurl copies at a time
constexpr std::string_view server_header = "server:";

/// libcurl takes 0 for no limit.
long milliseconds_of(std::chrono::nanoseconds time) {
  return std::max(static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count()), 1L);
}

bool begins(std::string_view line, std::string_view word) {
  return line.size() > word.size() && ::strncasecmp(line.data(), word.data(), word.size()) == 0;
}

void set_server(s3_conversation& with, std::string_view said) {
  while (!said.empty() && std::isspace(static_cast<unsigned char>(said.front())) != 0)
    said.remove_prefix(1);
  const auto end = said.find_first_of("\r\n /(");
  with.server_name = printable(said.substr(0, end));
  const bool versioned = end != std::string_view::npos && said[end] == '/';
  const auto rest = versioned ? said.substr(end + 1) : std::string_view();
  with.server_version = printable(rest.substr(0, rest.find_first_of("\r\n (")));
}

} // namespace

std::optional<remote::hedging::kind> s3_transfer::hedged_as() const {
  switch (what) {
    case kind::exists: return remote::hedging::kind::head;
    case kind::read:
    case kind::read_text: return remote::hedging::kind::get;
    default: return std::nullopt;
  }
}

size_t s3_transfer::body_max() const {
  return what == kind::scan || what == kind::greet
             ? list_bytes_max
             : std::max(error_bytes_max, remote::store_commands::text_bytes_max);
}

s3_attempt::s3_attempt(s3_conversation& with, s3_transfer_ptr of, std::chrono::nanoseconds limit, bool second)
    : with_(with), of_(std::move(of)), second_(second), easy_(curl_easy_init()) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (const std::string& line : remote::s3_headers(with_.address, of_->request, with_.with.login, now))
    lines_ = curl_slist_append(lines_, line.c_str());
  lines_ = curl_slist_append(lines_, "Expect:"); // it would cost a round trip for every value
  curl_easy_setopt(easy_, CURLOPT_URL, remote::s3_url(with_.address, of_->request).c_str());
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_PROXY, ""); // that of the environment is not for us
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L); // nobody waits for a name that is being resolved
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(limit));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, milliseconds_of(limit));
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, lines_);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, why_.data());
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &s3_attempt::on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &s3_attempt::on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  if (of_->what == s3_transfer::kind::read)
    curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, buffer_bytes);
  const std::string_view method = of_->request.method;
  if (method == "HEAD")
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  if (method == "DELETE")
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, of_->request.method);
  if (of_->sends()) {
    curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, buffer_bytes);
    curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(of_->bytes()));
    curl_easy_setopt(easy_, CURLOPT_READFUNCTION, &s3_attempt::on_send);
    curl_easy_setopt(easy_, CURLOPT_READDATA, this);
    curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, &s3_attempt::on_seek);
    curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
  }
  if (with_.with.tls) { // libcurl would read all certificates of the system for each connection
    curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, &s3_attempt::on_tls);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, this);
  }
}

s3_attempt::~s3_attempt() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(lines_);
}

std::string s3_attempt::why(CURLcode how) const {
  return why_[0] != '\0' ? why_.data() : curl_easy_strerror(how);
}

std::chrono::seconds s3_attempt::retry_after() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds);
  return std::chrono::seconds(seconds);
}

bool s3_attempt::has_received_value() const {
  return !too_long_ && of_->receiver == this && of_->missing[0].empty();
}

void s3_attempt::leave_memory() {
  if (of_->receiver == this)
    of_->receiver = nullptr;
}

void s3_attempt::go_on() { curl_easy_pause(easy_, CURLPAUSE_CONT); }

// ---- what libcurl asks of us ----

// An exception cannot pass libcurl: without memory the program ends.

size_t s3_attempt::on_header(char* bytes, size_t one, size_t count, void* attempt) noexcept {
  static_cast<s3_attempt*>(attempt)->hear({bytes, one * count});
  return one * count;
}

size_t s3_attempt::on_body(char* bytes, size_t one, size_t count, void* attempt) noexcept {
  auto& of = *static_cast<s3_attempt*>(attempt);
  if (of.has_to_pause())
    return CURL_WRITEFUNC_PAUSE;
  return of.take({bytes, one * count}) ? one * count : 0;
}

size_t s3_attempt::on_send(char* into, size_t one, size_t count, void* attempt) noexcept {
  return static_cast<s3_attempt*>(attempt)->give(into, one * count);
}

int s3_attempt::on_seek(void* attempt, curl_off_t offset, int origin) noexcept {
  if (origin != SEEK_SET || offset < 0)
    return CURL_SEEKFUNC_CANTSEEK;
  static_cast<s3_attempt*>(attempt)->sent_ = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

CURLcode s3_attempt::on_tls(CURL*, void* tls, void* attempt) noexcept {
  static_cast<s3_attempt*>(attempt)->with_.with.tls->lend_to(static_cast<ssl_ctx_st*>(tls));
  return CURLE_OK;
}

void s3_attempt::hear(std::string_view header) {
  with_.reached = true;
  ++with_.heard;
  if (!first_byte_at_)
    first_byte_at_ = std::chrono::steady_clock::now();
  of_->hedge_at.reset();
  if (of_->what == s3_transfer::kind::greet && begins(header, server_header))
    set_server(with_, header.substr(server_header.size()));
}

bool s3_attempt::receives_value() const {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  return of_->what == s3_transfer::kind::read && status == 200;
}

bool s3_attempt::has_to_pause() const {
  return of_->receiver != nullptr && of_->receiver != this && receives_value();
}

/// False: it is longer than expected.
bool s3_attempt::take(std::string_view bytes) {
  ++with_.heard;
  if (receives_value())
    return take_value(bytes);
  too_long_ = body_.size() + bytes.size() > of_->body_max();
  if (!too_long_)
    body_.append(bytes);
  return !too_long_;
}

bool s3_attempt::take_value(std::string_view bytes) {
  if (of_->receiver == nullptr) {
    of_->receiver = this;
    of_->missing = of_->memory;
  }
  for (auto& place : of_->missing) {
    const size_t count = std::min(place.size(), bytes.size());
    if (count != 0)
      std::memcpy(place.data(), bytes.data(), count);
    place = place.subspan(count);
    bytes.remove_prefix(count);
  }
  too_long_ = !bytes.empty();
  return !too_long_;
}

size_t s3_attempt::give(char* into, size_t room) {
  size_t given = 0;
  const std::array<std::span<const char>, 2> all{
      std::span<const char>(of_->head),
      std::span<const char>(reinterpret_cast<const char*>(of_->payload.data()), of_->payload.size())};
  size_t begin = 0;
  for (const auto& one : all) {
    if (sent_ >= begin && sent_ < begin + one.size() && given < room) {
      const size_t count = std::min(room - given, begin + one.size() - sent_);
      std::memcpy(into + given, one.data() + (sent_ - begin), count);
      sent_ += count;
      given += count;
    }
    begin += one.size();
  }
  return given;
}

} // namespace terrace::actors
