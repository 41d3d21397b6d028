// How a bucket is asked: the names of values in it, requests with their signature, and what answers mean. Pure; who moves the bytes is
// actors/remote/s3_link.cpp.
//
// Values have other names there than in a server with commands: <prefix><two digits of the digest>/t1/..., without the braces of the
// digest. Stores divide a bucket by the begins of names, so two digits early spread the load; the prefix stays first, so that rights
// and rules for it can be given. Tokens and others keep their names.
//
// Requests are signed by AWS Signature Version 4. libcurl's own signs headers that it does not send (in version 7.88), and other
// versions sort and encode differently; this one is the same with all.
#pragma once

#include "base/error.hpp"
#include "remote/store_address.hpp"
#include "remote/store_commands.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace::remote {

// ---- names ----

/// The name in a bucket of a key of `realm`, and the reverse. What is none of a value is returned as it is.
std::string bucket_name_of(std::string_view key);
std::string key_of_bucket_name(std::string_view name);

// ---- requests ----

struct s3_request {
  const char* method = "GET";
  std::string path;  ///< from the '/' in front of the bucket on, of characters that need no escape
  std::string query; ///< without '?', in the order of its names, escaped
  std::vector<std::pair<std::string, std::string>>
      headers{}; ///< in the order of their lower-case names: all but host and x-amz-...
};

/// `name` in the bucket; empty: the bucket itself.
std::string s3_path(const store_address& bucket, std::string_view name);
/// Asks for at most `count` names that begin with `prefix`; `after`: what the answer before this one has said; empty: the first.
std::string s3_list_query(std::string_view prefix, size_t count, std::string_view after);
std::string s3_url(const store_address& bucket, const s3_request& request);

/// The headers to send: those of the request, the time, and the signature. The payload is not part of the signature: values have
/// checksums, or are authentic by themselves. Without a password the request is anonymous.
std::vector<std::string> s3_headers(const store_address& bucket, const s3_request& request,
                                    const store_login& login, std::chrono::sys_seconds now);

/// The value of the header Authorization (AWS Signature Version 4); `request.headers` has all that are signed, x-amz-... included.
std::string s3_authorization(const s3_request& request, const store_login& login, std::string_view region,
                             std::string_view payload_hash, std::chrono::sys_seconds now);

// ---- answers ----

struct s3_verdict {
  command_result result{};
  error why{};
  bool ends = false;  ///< no other request would be served: credentials, bucket or region are wrong
  bool slow = false;  ///< the store asks for fewer requests
  bool fails = false; ///< the store is in trouble: some of these in a row, and it is out of service
};

/// `body`: of an answer that is an error; HEAD has none.
s3_verdict meaning_of_answer(long status, std::string_view body);

struct s3_names {
  std::vector<std::string> names;
  std::string next; ///< for `s3_list_query`; empty: these were the last
};
/// Errors (`bad_request`): it is no list of a bucket.
result<s3_names> parse_s3_list(std::string_view body);

} // namespace terrace::remote
