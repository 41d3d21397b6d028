// Names, signatures and verdicts of a bucket. The signatures are those of the examples in Amazon's documentation of Signature Version 4.
#include "remote/realm.hpp"
#include "remote/s3_request.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

// ---- names ----

std::vector<uint8_t> s3_key_bytes(uint8_t byte) { return std::vector<uint8_t>(32, byte); }

remote_identity s3_identity() {
  remote_identity object{.epoch = 0x1234, .pool = 2, .rank = 1};
  for (size_t i = 0; i < object.chunk.bytes.size(); ++i)
    object.chunk.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  return object;
}

TEST(BucketNames, HaveTwoDigitsOfTheDigestBehindThePrefix) {
  const auto names = realm::make("team/kv/", s3_key_bytes(1)).value();
  const auto name = bucket_name_of(names.key_of(s3_identity()));
  EXPECT_TRUE(name.starts_with("team/kv/a0/t1/")) << name;
  EXPECT_NE(name.find("/2.1/a0a1a2"), std::string::npos) << name;
  EXPECT_EQ(name.find_first_of("{}"), std::string::npos) << name;
}

TEST(BucketNames, BecomeTheKeysAgain) {
  for (const char* prefix : {"terrace/", "", "a/ab/t1/", "terrace", "team/kv"}) {
    const auto names = realm::make(prefix, s3_key_bytes(1)).value();
    for (uint32_t part : {0U, 1U, 12U}) {
      const auto key = names.key_of(s3_identity(), part);
      EXPECT_EQ(key_of_bucket_name(bucket_name_of(key)), key);
      EXPECT_TRUE(bucket_name_of(key).starts_with(prefix)) << "rights and rules are given by it";
      EXPECT_NE(bucket_name_of(key), key);
    }
    for (const std::string& other :
         {names.epoch_key_of_all(), names.epoch_key_of(realm_space{}), std::string(prefix) + "probe/1",
          std::string("others/ab/t1/x"), std::string(prefix) + "ab/t1/too/short", std::string(),
          std::string("{}"), std::string("x{abc}")}) {
      EXPECT_EQ(bucket_name_of(other), other);
      EXPECT_EQ(key_of_bucket_name(other), other);
    }
  }
}

TEST(BucketNames, WithOtherDigitsThanTheDigestsAreNoValues) {
  const std::string name = "ab/t1/0/1/2.3/cdef";
  EXPECT_EQ(key_of_bucket_name(name), name);
}

// ---- requests ----

store_address s3_bucket_at(const std::string& address) { return parse_store_address(address).value(); }

TEST(S3Requests, HaveThePathStyle) {
  const auto bucket = s3_bucket_at("s3://10.0.0.7:9000/kv-cache");
  const s3_request one{.path = s3_path(bucket, "terrace/ab/t1/x")};
  EXPECT_EQ(s3_url(bucket, one), "http://10.0.0.7:9000/kv-cache/terrace/ab/t1/x");
  const s3_request list{.path = s3_path(bucket, ""), .query = s3_list_query("terrace/", 5, "a+b/=")};
  EXPECT_EQ(s3_url(bucket, list), "http://10.0.0.7:9000/kv-cache?continuation-token=a%2Bb%2F%3D&list-type=2&"
                                  "max-keys=5&prefix=terrace%2F");
}

const store_login amazons_example{.user = "AKIAIOSFODNN7EXAMPLE",
                                  .password = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
constexpr std::string_view s3_no_payload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::chrono::sys_seconds s3_at = std::chrono::sys_days(std::chrono::year(2013) / 5 / 24);

std::string s3_signature(const s3_request& request, std::string_view payload) {
  const auto line = s3_authorization(request, amazons_example, "us-east-1", payload, s3_at);
  return line.substr(line.find("Signature=") + sizeof "Signature=" - 1);
}

TEST(S3Requests, AreSignedAsAmazonShowsIt) {
  const std::string host = "examplebucket.s3.amazonaws.com", time = "20130524T000000Z", empty(s3_no_payload);
  EXPECT_EQ(s3_signature({.path = "/test.txt",
                          .headers = {{"host", host},
                                      {"range", "bytes=0-9"},
                                      {"x-amz-content-sha256", empty},
                                      {"x-amz-date", time}}},
                         s3_no_payload),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(s3_signature({.path = "/",
                          .query = "lifecycle=",
                          .headers = {{"host", host}, {"x-amz-content-sha256", empty}, {"x-amz-date", time}}},
                         s3_no_payload),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(s3_signature({.path = "/",
                          .query = "max-keys=2&prefix=J",
                          .headers = {{"host", host}, {"x-amz-content-sha256", empty}, {"x-amz-date", time}}},
                         s3_no_payload),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  const std::string payload = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
  EXPECT_EQ(s3_signature({.method = "PUT",
                          .path = "/test%24file.text",
                          .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                      {"host", host},
                                      {"x-amz-content-sha256", payload},
                                      {"x-amz-date", time},
                                      {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}},
                         payload),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(S3Requests, SignWhatTheySend) {
  const auto bucket = s3_bucket_at("s3+tls://s3.example/kv-cache?region=eu-central-1");
  const s3_request put{.method = "PUT", .path = "/kv-cache/x", .headers = {{"if-none-match", "*"}}};
  const auto lines = s3_headers(bucket, put, amazons_example, s3_at);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "if-none-match: *");
  EXPECT_EQ(lines[1], "Host: s3.example");
  EXPECT_EQ(lines[2], "x-amz-content-sha256: UNSIGNED-PAYLOAD");
  EXPECT_EQ(lines[3], "x-amz-date: 20130524T000000Z");
  EXPECT_TRUE(lines[4].starts_with("Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/"
                                   "eu-central-1/s3/aws4_request,SignedHeaders=host;if-none-match;"
                                   "x-amz-content-sha256;x-amz-date,Signature="))
      << lines[4];
  EXPECT_EQ(lines[4].find(amazons_example.password), std::string::npos);
}

TEST(S3Requests, EscapeNamesThatOthersHaveGiven) {
  const auto bucket = s3_bucket_at("s3://10.0.0.7:9000/kv-cache");
  EXPECT_EQ(s3_path(bucket, ""), "/kv-cache");
  EXPECT_EQ(s3_path(bucket, "t1/a~b/c-d_e.f"), "/kv-cache/t1/a~b/c-d_e.f");
  EXPECT_EQ(s3_path(bucket, "t1/x?y=1#z/%41 b/"), "/kv-cache/t1/x%3Fy%3D1%23z/%2541%20b/");
}

TEST(S3Requests, AreAnonymousWithoutAKey) {
  EXPECT_TRUE(s3_headers(s3_bucket_at("s3://10.0.0.7/kv-cache"), {.path = "/kv-cache/x"}, {}, s3_at).empty());
}

// ---- answers ----

std::string s3_error_body(const std::string& code, const std::string& message = "no") {
  return "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>";
}

TEST(S3Answers, ThatServe) {
  for (long status : {200, 204, 206})
    EXPECT_EQ(meaning_of_answer(status, "").result, command_result::done);
  for (long status : {404, 409, 412})
    EXPECT_EQ(meaning_of_answer(status, "").result, command_result::absent);
  EXPECT_EQ(meaning_of_answer(404, s3_error_body("NoSuchKey")).result, command_result::absent);
}

TEST(S3Answers, ThatNoOtherRequestCanChangeEndTheConnection) {
  struct {
    long status;
    const char* code;
    errc kind;
    const char* fix;
  } constexpr all[] = {{404, "NoSuchBucket", errc::unsupported, "create it"},
                       {403, "InvalidAccessKeyId", errc::denied, "second line of password_file"},
                       {403, "UserSuspended", errc::denied, "enable it"},
                       {403, "SignatureDoesNotMatch", errc::denied, "first line of password_file"},
                       {400, "ExpiredToken", errc::denied, "password_file"},
                       {403, "RequestTimeTooSkewed", errc::denied, "NTP"},
                       {400, "AuthorizationHeaderMalformed", errc::unsupported, "?region="},
                       {301, "PermanentRedirect", errc::unsupported, "?region="},
                       {307, "", errc::unsupported, "?region="}};
  for (const auto& each : all) {
    const auto verdict = meaning_of_answer(each.status, s3_error_body(each.code));
    EXPECT_EQ(verdict.result, command_result::refused) << each.code;
    EXPECT_TRUE(verdict.ends) << each.code;
    EXPECT_EQ(verdict.why.code, each.kind) << each.code;
    EXPECT_NE(verdict.why.text.find(each.fix), std::string::npos) << verdict.why.text;
    EXPECT_NE(verdict.why.text.find(std::to_string(each.status)), std::string::npos) << verdict.why.text;
  }
}

TEST(S3Answers, ThatRefuseOneRequest) {
  const auto denied = meaning_of_answer(403, s3_error_body("AccessDenied"));
  EXPECT_EQ(denied.why.code, errc::denied);
  EXPECT_FALSE(denied.ends || denied.slow || denied.fails);
  EXPECT_NE(denied.why.text.find("PutObject"), std::string::npos);
  EXPECT_EQ(meaning_of_answer(403, "").why.code, errc::denied) << "HEAD has no body";
  EXPECT_EQ(meaning_of_answer(403, s3_error_body("QuotaExceeded")).why.code, errc::no_space);
  EXPECT_EQ(meaning_of_answer(507, "").why.code, errc::no_space);
  for (long status : {429, 503}) {
    const auto slow = meaning_of_answer(status, s3_error_body("SlowDown"));
    EXPECT_EQ(slow.why.code, errc::busy);
    EXPECT_TRUE(slow.slow && !slow.fails);
  }
  const auto broken = meaning_of_answer(500, s3_error_body("InternalError"));
  EXPECT_TRUE(broken.fails && !broken.slow);
  EXPECT_FALSE(meaning_of_answer(501, "").fails) << "it does not know the request";
  EXPECT_EQ(meaning_of_answer(418, "").why.code, errc::internal);
}

TEST(S3Answers, ShowWhatTheStoreSaysWithoutItsControlCharacters) {
  const auto verdict =
      meaning_of_answer(400, s3_error_body("A&amp;B", std::string("\x1b[31m") + std::string(500, 'm')));
  EXPECT_NE(verdict.why.text.find("400 A&B"), std::string::npos) << verdict.why.text;
  EXPECT_EQ(verdict.why.text.find('\x1b'), std::string::npos);
  EXPECT_LT(verdict.why.text.size(), 400U);
}

TEST(S3Lists, HaveNamesAndTheNextToken) {
  const auto list =
      parse_s3_list(
          "<ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated><Contents><Key>a/b</Key></Contents>"
          "<Contents><Key>c&amp;d</Key></Contents><NextContinuationToken>1/&lt;</NextContinuationToken>"
          "</ListBucketResult>")
          .value();
  EXPECT_EQ(list.names, (std::vector<std::string>{"a/b", "c&d"}));
  EXPECT_EQ(list.next, "1/<");
  const auto last = parse_s3_list("<ListBucketResult><IsTruncated>false</IsTruncated><NextContinuationToken>1"
                                  "</NextContinuationToken></ListBucketResult>")
                        .value();
  EXPECT_TRUE(last.names.empty());
  EXPECT_TRUE(last.next.empty());
  EXPECT_TRUE(parse_s3_list("<ListBucketResult><Key>cut").value().names.empty());
  const auto other = parse_s3_list("<html>");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text.find("expected"), std::string::npos);
}

} // namespace
} // namespace terrace::remote
