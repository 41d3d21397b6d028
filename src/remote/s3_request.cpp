#include "remote/s3_request.hpp"

#include "base/printable.hpp"
#include "index/sha256.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace terrace::remote {

namespace {

constexpr size_t said_max = 200;
constexpr std::string_view unsigned_payload = "UNSIGNED-PAYLOAD";

std::string hex_text(std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::span<const uint8_t> bytes_in(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// All but letters, digits and "-._~", as a signature asks for it.
std::string escaped(std::string_view text) {
  std::string made;
  for (unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
      made += static_cast<char>(c);
      continue;
    }
    std::array<char, 4> code{};
    std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned>(c));
    made += code.data();
  }
  return made;
}

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// "20130524T000000Z"
std::string time_text(std::chrono::sys_seconds now) {
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text.data();
}

} // namespace

// ---- names ----

namespace {

/// Where the last `count` parts of a name begin, between slashes; npos: it has fewer.
size_t begin_of_last(std::string_view name, size_t count) {
  size_t end = name.size();
  for (size_t left = count; left != 0; --left) {
    const auto slash = end == 0 ? std::string_view::npos : name.rfind('/', end - 1);
    if (slash == std::string_view::npos)
      return left == 1 ? 0 : std::string_view::npos;
    end = slash;
  }
  return end + 1;
}

bool is_part_number(std::string_view text) {
  return text.size() > 1 && text.front() == 'p' &&
         std::ranges::all_of(text.substr(1), [](unsigned char c) { return std::isdigit(c) != 0; });
}

constexpr size_t parts_before_digest = 4; // t1, space, epoch, and pool and rank
constexpr size_t spread_digits = 2;
constexpr std::string_view values = "t1/";

} // namespace

std::string bucket_name_of(std::string_view key) {
  const auto open = key.find('{'), close = key.find('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close <= open + spread_digits)
    return std::string(key);
  // The prefix need not end in '/'.
  const auto space = begin_of_last(key.substr(0, open), parts_before_digest); // the last one is empty
  if (space == std::string_view::npos || !key.substr(0, space).ends_with(values))
    return std::string(key);
  const size_t begin = space - values.size();
  const auto digest = key.substr(open + 1, close - open - 1);
  std::string name(key.substr(0, begin));
  name.append(digest.substr(0, spread_digits)).append(1, '/').append(key.substr(begin, open - begin));
  return name.append(digest).append(key.substr(close + 1));
}

std::string key_of_bucket_name(std::string_view name) {
  const auto last = name.rfind('/');
  const bool has_part = last != std::string_view::npos && is_part_number(name.substr(last + 1));
  const auto whole = has_part ? name.substr(0, last) : name;
  const auto digest = begin_of_last(whole, 1);
  const auto begin = begin_of_last(whole, parts_before_digest + 1);
  if (begin == std::string_view::npos || begin < spread_digits + 1 || whole[begin - 1] != '/')
    return std::string(name);
  const size_t spread = begin - spread_digits - 1;
  if (!whole.substr(begin).starts_with(values) || !is_hex_digit(whole[spread]) ||
      !is_hex_digit(whole[spread + 1]) ||
      whole.substr(digest, spread_digits) != whole.substr(spread, spread_digits))
    return std::string(name);
  std::string key(whole.substr(0, spread));
  key.append(whole.substr(begin, digest - begin)).append(1, '{').append(whole.substr(digest)).append(1, '}');
  return key.append(name.substr(whole.size()));
}

// ---- requests ----

std::string s3_path(const store_address& bucket, std::string_view name) {
  std::string path = "/" + bucket.bucket;
  for (size_t begin = 0;
       !name.empty() && begin <= name.size();) { // others may have put any name below the prefix
    const auto end = std::min(name.find('/', begin), name.size());
    path.append(1, '/').append(escaped(name.substr(begin, end - begin)));
    begin = end + 1;
  }
  return path;
}

std::string s3_list_query(std::string_view prefix, size_t count, std::string_view after) {
  std::string query = after.empty() ? "" : "continuation-token=" + escaped(after) + "&";
  return query + "list-type=2&max-keys=" + std::to_string(count) + "&prefix=" + escaped(prefix);
}

std::string s3_url(const store_address& bucket, const s3_request& request) {
  return (bucket.tls ? "https://" : "http://") + bucket.host + request.path +
         (request.query.empty() ? "" : "?" + request.query);
}

std::string s3_authorization(const s3_request& request, const store_login& login, std::string_view region,
                             std::string_view payload_hash, std::chrono::sys_seconds now) {
  const std::string time = time_text(now), day = time.substr(0, 8);
  std::string names,
      canonical = std::string(request.method) + "\n" + request.path + "\n" + request.query + "\n";
  for (const auto& [name, value] : request.headers) {
    names += (names.empty() ? "" : ";") + name;
    canonical.append(name).append(1, ':').append(value).append(1, '\n');
  }
  canonical.append(1, '\n').append(names).append(1, '\n').append(payload_hash);
  const std::string scope = day + "/" + std::string(region) + "/s3/aws4_request";
  sha256 hash;
  hash.begin();
  hash.update(canonical);
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + hex_text(hash.finish().bytes);
  const std::string secret = "AWS4" + login.password;
  digest key = hmac_sha256(bytes_in(secret), bytes_in(day));
  for (std::string_view part : {region, std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac_sha256(key.bytes, bytes_in(part));
  return "AWS4-HMAC-SHA256 Credential=" + login.user + "/" + scope + ",SignedHeaders=" + names +
         ",Signature=" + hex_text(hmac_sha256(key.bytes, bytes_in(text)).bytes);
}

std::vector<std::string> s3_headers(const store_address& bucket, const s3_request& request,
                                    const store_login& login, std::chrono::sys_seconds now) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : request.headers)
    lines.push_back(name + ": " + value);
  if (login.password.empty())
    return lines;
  s3_request whole = request;
  whole.headers.emplace_back("host", bucket.host);
  whole.headers.emplace_back("x-amz-content-sha256", unsigned_payload);
  whole.headers.emplace_back("x-amz-date", time_text(now));
  std::ranges::sort(whole.headers);
  lines.push_back("Host: " + bucket.host); // libcurl may write an address in another way than it is signed
  lines.push_back("x-amz-content-sha256: " + std::string(unsigned_payload));
  lines.push_back("x-amz-date: " + time_text(now));
  lines.push_back("Authorization: " + s3_authorization(whole, login, bucket.region, unsigned_payload, now));
  return lines;
}

// ---- answers ----

namespace {

/// The text of the next element of this name from `from` on, which moves behind it. None: there is none.
std::optional<std::string> element_of(std::string_view xml, const std::string& name, size_t& from) {
  const std::string open = "<" + name + ">", close = "</" + name + ">";
  const auto begin = xml.find(open, from);
  const auto end = begin == std::string_view::npos ? begin : xml.find(close, begin);
  if (end == std::string_view::npos)
    return std::nullopt;
  from = end + close.size();
  auto text = xml.substr(begin + open.size(), end - begin - open.size());
  std::string made;
  static constexpr std::pair<std::string_view, char> entities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  while (!text.empty()) {
    const auto* known =
        std::ranges::find_if(entities, [&](const auto& each) { return text.starts_with(each.first); });
    const bool is_entity = known != std::end(entities);
    made += is_entity ? known->second : text.front();
    text.remove_prefix(is_entity ? known->first.size() : 1);
  }
  return made;
}

std::string first_element(std::string_view xml, const std::string& name) {
  size_t from = 0;
  return element_of(xml, name, from).value_or("");
}

} // namespace

s3_verdict meaning_of_answer(long status, std::string_view body) {
  if (status >= 200 && status < 300)
    return {.result = command_result::done};
  const std::string code = first_element(body, "Code");
  std::string said = std::to_string(status);
  for (const std::string& part : {code, first_element(body, "Message")})
    said += part.empty() ? "" : " " + printable(std::string_view(part).substr(0, said_max));
  const auto refused = [&said](errc kind, const char* fix) {
    return s3_verdict{.result = command_result::refused,
                      .why = {kind, std::string(fix) + " (it says: " + said + ")"}};
  };
  struct {
    std::string_view code;
    errc kind;
    const char* fix;
  } constexpr ends[] = {
      {"NoSuchBucket", errc::unsupported,
       "the bucket does not exist: create it, or correct its name in address"},
      {"InvalidAccessKeyId", errc::denied,
       "the store does not know the access key: check the second line of password_file, and that the key is "
       "active"},
      {"UserSuspended", errc::denied, // of radosgw
       "the user of the access key is suspended: enable it at the store, or write another one's keys into "
       "password_file"},
      {"SignatureDoesNotMatch", errc::denied,
       "the secret key is not that of the access key: check the first line of password_file"},
      {"ExpiredToken", errc::denied, "the access key has expired: write another one into password_file"},
      {"RequestTimeTooSkewed", errc::denied,
       "the clocks of the store and of this machine differ: set them by NTP"},
      {"AuthorizationHeaderMalformed", errc::unsupported,
       "the bucket is in another region: write ?region=REGION behind the address"},
      {"PermanentRedirect", errc::unsupported,
       "the bucket is elsewhere: write the endpoint of its region as address, with ?region=REGION"},
  };
  for (const auto& each : ends)
    if (each.code == code) {
      auto verdict = refused(each.kind, each.fix);
      verdict.ends = true;
      return verdict;
    }
  if (status == 404)
    return {.result = command_result::absent};
  if (status == 409 || status == 412)
    return {.result = command_result::absent};
  if (code == "QuotaExceeded" || status == 507)
    return refused(errc::no_space,
                   "the bucket is full: raise its quota, or give it a lifecycle rule that removes objects");
  if (status == 429 || status == 503) {
    auto verdict = refused(errc::busy, "the store asks for fewer requests, and gets fewer");
    verdict.slow = true;
    return verdict;
  }
  if (status >= 500) {
    auto verdict = refused(errc::busy, "the store has an error of its own: look at its log");
    verdict.fails = status != 501;
    return verdict;
  }
  if (status == 401 || status == 403)
    return refused(errc::denied,
                   "the access key may not do this: let it call ListBucket on the bucket, and GetObject, "
                   "PutObject and DeleteObject on what begins with prefix, and check password_file");
  if (status >= 300 && status < 400) {
    auto verdict =
        refused(errc::unsupported, "the bucket is elsewhere: write the endpoint of its region as address, "
                                   "with ?region=REGION");
    verdict.ends = true;
    return verdict;
  }
  return refused(errc::internal, "the store refuses a request");
}

result<s3_names> parse_s3_list(std::string_view body) {
  if (body.find("<ListBucketResult") == std::string_view::npos)
    return fail(errc::bad_request, "a list of a bucket was expected: check that address names an S3 store");
  s3_names list;
  size_t from = 0;
  while (auto name = element_of(body, "Key", from))
    list.names.push_back(std::move(*name));
  if (first_element(body, "IsTruncated") == "true")
    list.next = first_element(body, "NextContinuationToken");
  return list;
}

} // namespace terrace::remote
