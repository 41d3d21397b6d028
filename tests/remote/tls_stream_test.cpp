// TLS with both ends in memory: our client, and OpenSSL's server.
#include "remote/tls_stream.hpp"

#include "tests/support/certificates.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace terrace::remote {
namespace {

using bytes = std::vector<std::byte>;
using test::certificate_authority;
using test::temporary_folder;

bytes pattern(size_t size) {
  bytes made(size);
  for (size_t i = 0; i < size; ++i)
    made[i] = static_cast<std::byte>(i * 31 + i / 251);
  return made;
}

/// The server's end.
class tls_server {
 public:
  explicit tls_server(const certificate_authority::issued& with, const std::string& clients_of = "",
                      int version = 0) {
    context_.reset(SSL_CTX_new(TLS_server_method()));
    if (SSL_CTX_use_certificate_file(context_.get(), with.certificate.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(context_.get(), with.key.c_str(), SSL_FILETYPE_PEM) != 1)
      throw std::runtime_error("the server has no certificate");
    SSL_CTX_set_max_proto_version(context_.get(), version);
    if (!clients_of.empty()) {
      SSL_CTX_load_verify_locations(context_.get(), clients_of.c_str(), nullptr);
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    ssl_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_accept_state(ssl_.get());
  }
  void received(std::span<const std::byte> sent) {
    BIO_write(in_, sent.data(), static_cast<int>(sent.size()));
    if (SSL_is_init_finished(ssl_.get()) == 0)
      SSL_do_handshake(ssl_.get());
    ERR_clear_error();
  }
  bytes take_outgoing() {
    bytes all(static_cast<size_t>(BIO_pending(out_)));
    if (!all.empty())
      BIO_read(out_, all.data(), static_cast<int>(all.size()));
    return all;
  }
  bytes read() {
    bytes all(1 << 20);
    size_t count = 0, sum = 0;
    while (SSL_read_ex(ssl_.get(), all.data() + sum, all.size() - sum, &count) == 1)
      sum += count;
    ERR_clear_error();
    all.resize(sum);
    return all;
  }
  void write(std::span<const std::byte> what) {
    size_t count = 0;
    ASSERT_EQ(SSL_write_ex(ssl_.get(), what.data(), what.size(), &count), 1);
  }
  void close() { SSL_shutdown(ssl_.get()); }
  bool refresh_keys() { return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) == 1; }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
};

class TlsStream : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!certificate_authority::installed())
      return;
    folder_ = std::make_unique<temporary_folder>("/tmp");
    authority_ = std::make_unique<certificate_authority>(folder_->path());
    server_ = authority_->issue("server", "IP:127.0.0.1,DNS:cache.test");
  }
  static void TearDownTestSuite() {
    authority_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!folder_)
      GTEST_SKIP() << "no openssl on this machine; install the package `openssl`";
  }

  static tls_keys_ptr keys(const std::string& name = "127.0.0.1", const std::string& client = "") {
    auto made = tls_keys::make({.ca_file = authority_->file(), .client_file = client, .name = name});
    EXPECT_TRUE(made) << made.error().text;
    return *made;
  }
  /// Carries bytes both ways, in pieces of this size, until nobody has more to say. Returns what the client makes of it.
  static result<void> carry(tls_stream& client, tls_server& server, size_t piece = SIZE_MAX) {
    for (bool moved = true; moved;) {
      auto out = client.take_outgoing();
      server.received(out);
      auto in = server.take_outgoing();
      moved = !out.empty() || !in.empty();
      for (std::span<const std::byte> left = in; !left.empty();) {
        auto part = left.first(std::min(piece, left.size()));
        left = left.subspan(part.size());
        if (auto taken = client.received(part); !taken)
          return taken;
      }
    }
    return {};
  }
  static std::string refusal(const tls_keys_ptr& with, tls_server& server) {
    tls_stream client(with);
    auto carried = carry(client, server);
    if (!carried)
      return carried.error().text;
    bytes area(16);
    auto read = client.read(area);
    return read ? "" : read.error().text;
  }

  static std::unique_ptr<temporary_folder> folder_;
  static std::unique_ptr<certificate_authority> authority_;
  static certificate_authority::issued server_;
};
std::unique_ptr<temporary_folder> TlsStream::folder_;
std::unique_ptr<certificate_authority> TlsStream::authority_;
certificate_authority::issued TlsStream::server_;

TEST_F(TlsStream, CarriesBytesBothWaysInPiecesOfAnySize) {
  for (int version : {TLS1_2_VERSION, 0})
    for (size_t piece : {size_t{1}, size_t{7}, size_t{5'000}, SIZE_MAX}) {
      tls_server server(server_, "", version);
      tls_stream client(keys());
      EXPECT_FALSE(client.established());
      auto carried = carry(client, server, piece);
      ASSERT_TRUE(carried) << carried.error().text;
      ASSERT_TRUE(client.established());
      const auto question = pattern(100'000), answer = pattern(300'001);
      client.write(question);
      server.received(client.take_outgoing());
      EXPECT_EQ(server.read(), question);
      server.write(answer);
      bytes got, area(10'000);
      const auto sent = server.take_outgoing();
      for (std::span<const std::byte> left = sent; !left.empty();) {
        auto part = left.first(std::min(piece, left.size()));
        left = left.subspan(part.size());
        ASSERT_TRUE(client.received(part));
        for (;;) {
          auto count = client.read(area);
          ASSERT_TRUE(count) << count.error().text;
          if (*count == 0)
            break;
          got.insert(got.end(), area.begin(), area.begin() + static_cast<ptrdiff_t>(*count));
        }
      }
      EXPECT_EQ(got, answer);
    }
}

TEST_F(TlsStream, FollowsNewKeys) {
  tls_server server(server_);
  tls_stream client(keys());
  ASSERT_TRUE(carry(client, server));
  ASSERT_TRUE(server.refresh_keys());
  server.write(pattern(10));
  bytes area(100);
  ASSERT_TRUE(client.received(server.take_outgoing()));
  EXPECT_EQ(client.read(area).value(), 10U);
  client.write(pattern(20));
  server.received(client.take_outgoing());
  EXPECT_EQ(server.read(), pattern(20));
}

TEST_F(TlsStream, TheNameMayBeThatOfAHost) {
  tls_server server(server_);
  EXPECT_EQ(refusal(keys("cache.test"), server), "");
}

TEST_F(TlsStream, TellsTheEndOfTheConnection) {
  tls_server server(server_);
  tls_stream client(keys());
  ASSERT_TRUE(carry(client, server));
  server.write(pattern(3));
  server.close();
  ASSERT_TRUE(client.received(server.take_outgoing()));
  bytes area(100);
  EXPECT_EQ(client.read(area).value(), 3U);
  auto end = client.read(area);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, errc::gone);
}

TEST_F(TlsStream, AnotherNameIsRefused) {
  for (const char* name : {"127.0.0.2", "::1", "other.test"}) {
    tls_server server(server_);
    auto why = refusal(keys(name), server);
    EXPECT_NE(why.find("not for \"" + std::string(name) + "\": write ?name=NAME"), std::string::npos) << why;
  }
}

TEST_F(TlsStream, AnUnknownAuthorityIsRefused) {
  certificate_authority other(folder_->path(), "other");
  tls_server server(other.issue("impostor", "IP:127.0.0.1"));
  auto why = refusal(keys(), server);
  EXPECT_NE(why.find("set tls_ca_file"), std::string::npos) << why;
  auto system = tls_keys::make({.name = "127.0.0.1"});
  ASSERT_TRUE(system) << system.error().text;
  tls_server ours(server_);
  why = refusal(*system, ours);
  EXPECT_NE(why.find("set tls_ca_file"), std::string::npos) << why;
}

TEST_F(TlsStream, AnExpiredCertificateIsRefused) {
  tls_server server(authority_->issue("expired", "IP:127.0.0.1", -1));
  auto why = refusal(keys(), server);
  EXPECT_NE(why.find("has expired: renew it"), std::string::npos) << why;
}

TEST_F(TlsStream, ShowsItsOwnCertificateIfTheServerAsks) {
  auto ours = authority_->issue("client", "DNS:client.test");
  certificate_authority other(folder_->path(), "other");
  auto theirs = other.issue("stranger", "DNS:client.test");
  for (int version : {TLS1_2_VERSION, 0}) {
    tls_server asks(server_, authority_->file(), version);
    EXPECT_EQ(refusal(keys("127.0.0.1", ours.both), asks), "");
    tls_server refuses(server_, authority_->file(), version);
    auto why = refusal(keys("127.0.0.1", theirs.both), refuses);
    EXPECT_NE(why.find("does not accept the certificate in tls_client_file"), std::string::npos) << why;
  }
  tls_server asks(server_, authority_->file());
  auto why = refusal(keys(), asks);
  EXPECT_NE(why.find("set tls_client_file"), std::string::npos) << why;
}

TEST_F(TlsStream, AServerWithoutTlsIsToldApart) {
  for (const char* said : {"-ERR unknown command\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "+PONG\r\n"}) {
    tls_stream client(keys());
    (void) client.take_outgoing();
    auto taken = client.received(std::as_bytes(std::span(std::string_view(said))));
    ASSERT_FALSE(taken) << said;
    EXPECT_NE(taken.error().text.find("does not speak TLS at this port"), std::string::npos)
        << taken.error().text;
  }
}

TEST_F(TlsStream, ChangedBytesEndTheConnection) {
  tls_server server(server_);
  tls_stream client(keys());
  ASSERT_TRUE(carry(client, server));
  server.write(pattern(1'000));
  auto sent = server.take_outgoing();
  sent[500] ^= std::byte{1};
  ASSERT_TRUE(client.received(sent));
  bytes area(2'000);
  EXPECT_FALSE(client.read(area));
  EXPECT_FALSE(client.established()) << "nothing more is written";
}

TEST_F(TlsStream, FilesThatAreNotWhatTheyShouldBeAreNamed) {
  const std::string text = folder_->path() + "/text", none = folder_->path() + "/none";
  test::write_file(text, "no certificate\n");
  auto server = server_;
  const std::string locked = folder_->path() + "/locked"; // nobody is asked for its password
  ASSERT_EQ(
      test::run({"openssl", "pkey", "-in", server.key, "-aes256", "-passout", "pass:secret", "-out", locked})
          .exit_code,
      0);
  test::write_file(locked, test::read_file(server.certificate) + test::read_file(locked));
  struct {
    tls_options with;
    std::string file;
    const char* expected;
  } cases[] = {
      {{.ca_file = none}, none, "certificates of authorities in PEM"},
      {{.ca_file = text}, text, "certificates of authorities in PEM"},
      {{.ca_file = folder_->path()}, folder_->path(), "certificates of authorities in PEM"},
      {{.client_file = none}, none, "a certificate in PEM"},
      {{.client_file = text}, text, "a certificate in PEM"},
      {{.client_file = server.certificate}, server.certificate, "the private key of its certificate"},
      {{.client_file = locked}, locked, "the private key of its certificate in PEM, without a password"},
  };
  for (auto& c : cases) {
    auto made = tls_keys::make(c.with);
    ASSERT_FALSE(made) << c.file;
    EXPECT_EQ(made.error().code, errc::bad_request);
    EXPECT_NE(made.error().text.find(c.file), std::string::npos) << made.error().text;
    EXPECT_NE(made.error().text.find(c.expected), std::string::npos) << made.error().text;
  }
}

} // namespace
} // namespace terrace::remote
