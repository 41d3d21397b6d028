// The HTTP server on a real socket, with and without TLS.
#include "metrics/http_server.hpp"

#include "base/unique_fd.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/scrape.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace terrace::metrics {
namespace {

using namespace std::chrono_literals;
using test::http;

const numeric_address loopback{"127.0.0.1", 0};

std::unique_ptr<http_server> serve(http_options with = {.address = loopback}) {
  auto made = http_server::listen(with);
  if (!made)
    throw std::runtime_error(made.error().text);
  (*made)->serve("/answer", [] { return http_answer{200, "text/plain", "answered"}; });
  return std::move(*made);
}

void connect_with(const unique_fd& peer, const http_server& server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.address().port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

unique_fd connect_to(const http_server& server) {
  unique_fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  connect_with(peer, server);
  return peer;
}

void say(const unique_fd& peer, std::string_view text) {
  EXPECT_EQ(send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::string rest_of(const unique_fd& peer) {
  std::string answer;
  char piece[4096];
  for (ssize_t n; (n = recv(peer.get(), piece, sizeof piece, 0)) > 0;)
    answer.append(piece, static_cast<size_t>(n));
  return answer;
}

TEST(HttpServer, AnswersGetAndHeadAlone) {
  auto server = serve();
  auto ask = [&](const std::string& text) { return http(server->address().port, text); };
  std::string got = ask("GET /answer HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n")) << got;
  EXPECT_TRUE(got.ends_with("\r\n\r\nanswered")) << got;
  EXPECT_TRUE(ask("GET /answer?from=here HTTP/1.0\r\n\r\n").ends_with("answered"));
  got = ask("HEAD /answer HTTP/1.1\r\n\r\n");
  EXPECT_NE(got.find("Content-Length: 8\r\n"), std::string::npos) << got;
  EXPECT_TRUE(got.ends_with("\r\n\r\n")) << got;
  EXPECT_TRUE(ask("POST /answer HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  for (const char* wrong : {"\r\n\r\n", "GET\r\n\r\n", "GET /answer\r\n\r\n", "GET /answer SSH-2.0\r\n\r\n",
                            "\x16\x03\x01 / HTTP\r\n\r\n"})
    EXPECT_TRUE(ask(wrong).starts_with("HTTP/1.1 400 ")) << wrong;
}

TEST(HttpServer, AnswersWhatComesInPiecesAndWhatIsMuchLongerThanARequest) {
  auto server = serve();
  auto slow = connect_to(*server), other = connect_to(*server);
  say(slow, "GET /ans");
  say(other, "GET /answer HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(rest_of(other).ends_with("answered")) << "nobody waits for the slow one";
  say(slow, "wer HTTP/1.1\r\nX: y\r\n");
  say(slow, "\r\n");
  EXPECT_TRUE(rest_of(slow).ends_with("answered"));
  auto long_head = connect_to(*server);
  say(long_head, "GET /answer HTTP/1.1\r\nX: " + std::string(40'000, 'x'));
  EXPECT_TRUE(rest_of(long_head).starts_with("HTTP/1.1 431 "));
  server->serve("/large", [] { return http_answer{200, "text/plain", std::string(8 << 20, 'x')}; });
  EXPECT_GT(http(server->address().port, "GET /large HTTP/1.1\r\n\r\n").size(), size_t{8} << 20);
}

TEST(HttpServer, TheTokenIsInAFieldOfAnySpelling) {
  auto server = serve({.address = loopback, .token = "secret"});
  for (const char* field :
       {"Authorization: Bearer secret", "authorization:Bearer secret", "AUTHORIZATION: \t Bearer secret "})
    EXPECT_TRUE(
        http(server->address().port, std::string("GET /answer HTTP/1.1\r\nHost: x\r\n") + field + "\r\n\r\n")
            .starts_with("HTTP/1.1 200 "))
        << field;
  EXPECT_TRUE(http(server->address().port, "GET /answer HTTP/1.1\r\nX-Authorization: Bearer secret\r\n\r\n")
                  .starts_with("HTTP/1.1 401 "));
}

TEST(HttpServer, OfTooManyConnectionsTheOldestEnds) {
  auto server = serve();
  std::vector<unique_fd> silent;
  for (size_t i = 0; i < http_server::peers_max; ++i)
    silent.push_back(connect_to(*server));
  EXPECT_TRUE(http(server->address().port, "GET /answer HTTP/1.1\r\n\r\n").ends_with("answered"));
  EXPECT_EQ(rest_of(silent.front()), "");
}

TEST(HttpServer, AClientThatSendsWithoutEndKeepsNobodyWaiting) {
  auto server = serve();
  auto endless = connect_to(*server);
  std::thread sender([&] {
    const std::string much = "GET /answer HTTP/1.1\r\n\r\n" + std::string(1 << 20, 'x');
    while (send(endless.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0)
      ;
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(http(server->address().port, "GET /answer HTTP/1.1\r\n\r\n").ends_with("answered"));
  server.reset(); // ends its connection
  sender.join();
}

TEST(HttpServer, SaysOnceThatThereAreNoDescriptorsAndGoesOnWhenThereAre) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> warnings;
  auto server = serve({.address = loopback, .warn = [&](const std::string& text) {
                         std::lock_guard guard(mutex);
                         warnings.push_back(text);
                         changed.notify_all();
                       }});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  unique_fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(unique_fd(dup(peer.get())).get()); // the lowest that is free
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  connect_with(peer, *server);
  say(peer, "GET /answer HTTP/1.1\r\n\r\n");
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !warnings.empty(); });
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(rest_of(peer).ends_with("answered"));
  server.reset();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("metrics cannot accept connections"), std::string::npos) << warnings[0];
}

TEST(HttpServer, EndsWithConnectionsThatHaveSaidNothing) {
  auto server = serve();
  auto silent = connect_to(*server), begun = connect_to(*server);
  say(begun, "GET ");
  http(server->address().port, "GET /answer HTTP/1.1\r\n\r\n"); // both have been accepted
  server.reset();
  char rest = 0;
  EXPECT_LE(recv(silent.get(), &rest, 1, 0), 0);
  EXPECT_LE(recv(begun.get(), &rest, 1, 0), 0);
}

TEST(HttpServer, RepeatsWork) {
  std::mutex mutex;
  std::condition_variable changed;
  int times = 0;
  auto server = serve();
  server->repeat(1ms, [&] {
    std::lock_guard guard(mutex);
    ++times;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return times >= 3; });
}

TEST(HttpServer, SaysWhyItCannotListen) {
  auto first = serve();
  auto second = http_server::listen({.address = first->address()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::busy);
  EXPECT_NE(second.error().text.find("listens on that port"), std::string::npos) << second.error().text;
  auto foreign = http_server::listen({.address = {"192.0.2.1", 0}});
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, errc::busy);
  EXPECT_NE(foreign.error().text.find("Cannot assign requested address"), std::string::npos)
      << foreign.error().text;
}

struct HttpServerWithTls : ::testing::Test {
  void SetUp() override {
    if (!test::certificate_authority::installed())
      GTEST_SKIP() << "no openssl on this machine; install the package `openssl`";
  }

  /// What a client gets that verifies the server's certificate.
  std::string get(const http_server& server, const test::certificate_authority& authority) const {
    auto done = test::run({"openssl", "s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1",
                           "-CAfile", authority.file(), "-connect", server.address().text()},
                          "GET /answer HTTP/1.1\r\n\r\n");
    return done.out;
  }

  test::temporary_folder folder{"/tmp"};
};

TEST_F(HttpServerWithTls, AnswersAndSaysToOthersWhatItSpeaks) {
  test::certificate_authority authority(folder / ".");
  auto server = serve({.address = loopback, .tls_file = authority.issue("metrics", "IP:127.0.0.1").both});
  EXPECT_TRUE(get(*server, authority).ends_with("answered")) << get(*server, authority);
  std::string plain = http(server->address().port, "GET /answer HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(plain.starts_with("HTTP/1.1 400 ") && plain.find("https://") != std::string::npos) << plain;
  auto garbage = connect_to(*server);
  say(garbage, std::string_view("\x16\x03\x01\x00\x05hello", 10));
  EXPECT_EQ(rest_of(garbage).find("answered"), std::string::npos);
  auto silent = connect_to(*server);
  EXPECT_TRUE(get(*server, authority).ends_with("answered"));
}

TEST_F(HttpServerWithTls, FollowsItsFile) {
  test::certificate_authority first(folder / ".", "first"), second(folder / ".", "second");
  std::string file = folder / "server.pem";
  auto copy = [&](const std::string& from) {
    std::filesystem::copy_file(from, file + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(file + ".new", file);
  };
  copy(first.issue("metrics", "IP:127.0.0.1").both);
  std::vector<std::string> warnings; // of the server's thread, read after its answers
  auto server = serve({.address = loopback, .tls_file = file, .warn = [&](const std::string& text) {
                         warnings.push_back(text);
                       }});
  EXPECT_TRUE(get(*server, first).ends_with("answered"));
  test::write_file(folder / "broken", "no certificate");
  copy(folder / "broken");
  EXPECT_TRUE(get(*server, first).ends_with("answered")) << "the former one is used";
  copy(second.issue("metrics", "IP:127.0.0.1").both);
  EXPECT_TRUE(get(*server, second).ends_with("answered"));
  EXPECT_EQ(get(*server, first), "");
  server.reset();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(
      warnings[0].find("still the former one: " + file + ": a file with a certificate in PEM was expected"),
      std::string::npos)
      << warnings[0];
}

TEST_F(HttpServerWithTls, RefusesAFileThatIsNone) {
  test::certificate_authority authority(folder / ".");
  auto issued = authority.issue("metrics", "IP:127.0.0.1");
  std::string locked = folder / "locked"; // nobody is asked for its password
  ASSERT_EQ(
      test::run({"openssl", "pkey", "-in", issued.key, "-aes256", "-passout", "pass:secret", "-out", locked})
          .exit_code,
      0);
  test::write_file(locked, test::read_file(issued.certificate) + test::read_file(locked));
  for (const auto& [file, expected] :
       {std::pair<std::string, std::string>{folder / "none", "a file with a certificate in PEM"},
        {folder / ".", "a file with a certificate in PEM"},
        {issued.key, "a file with a certificate in PEM"},
        {issued.certificate, "the private key of its certificate"},
        {locked, "the private key of its certificate in PEM, without a password"}}) {
    auto refused = http_server::listen({.address = loopback, .tls_file = file});
    ASSERT_FALSE(refused) << file;
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find(file + ": " + expected), std::string::npos) << refused.error().text;
  }
}

} // namespace
} // namespace terrace::metrics
