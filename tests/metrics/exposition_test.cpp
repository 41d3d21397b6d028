// A real scrape over HTTP, judged by promtool and by a real Prometheus server.
#include "metrics/client_probe.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/exposition.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"
#include "metrics/tier_probe.hpp"
#include "metrics/worker_probe.hpp"

#include "base/unique_fd.hpp"
#include "tests/support/scrape.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace terrace::metrics {
namespace {

using namespace std::chrono_literals;

using test::scrape;

/// Runs a shell command with `input`; returns its exit status and what it printed.
std::pair<int, std::string> run(const std::string& command, const std::string& input) {
  char name[] = "/tmp/terrace-metrics-XXXXXX";
  unique_fd file(mkstemp(name));
  EXPECT_EQ(write(file.get(), input.data(), input.size()), static_cast<ssize_t>(input.size()));
  FILE* pipe = popen((command + " 2>&1 < " + name).c_str(), "r");
  std::string output;
  char piece[4096];
  for (size_t n; (n = fread(piece, 1, sizeof piece, pipe)) > 0;)
    output.append(piece, n);
  int status = pclose(pipe);
  unlink(name);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

bool installed(const std::string& tool) { return run("command -v " + tool, "").first == 0; }

constexpr std::string_view verb_names[] = {"", "hello", "open_space", "lookup"};

/// Serves one of each probe, as a daemon with two groups would register them.
std::unique_ptr<exposition> serve_everything() {
  auto served = exposition::serve({.address = {"127.0.0.1", 0}});
  EXPECT_TRUE(served) << served.error().text;
  auto all = std::move(*served);
  for (std::string group : {"default", "tenant"}) {
    auto requests = std::make_shared<request_probe>();
    requests->started(3);
    requests->finished(3, errc::ok, 42us);
    all->add(requests, {std::begin(verb_names), std::end(verb_names)}, {{"group", group}});
    for (std::string tier : {"host", "disk"}) {
      auto probe = std::make_shared<tier_probe>();
      probe->hit(7);
      probe->occupies(
          {.capacity_bytes = 1 << 20, .used_bytes = 4096, .requested_bytes = 4000, .largest_free_run = 8192});
      all->add(probe, {{"group", group}, {"tier", tier}});
    }
    all->add(std::make_shared<client_probe>(), {{"group", group}});
    all->add(std::make_shared<disk_probe>(), {{"group", group}});
  }
  auto shadow = std::make_shared<shadow_probe>();
  shadow->add_line("lru", 1 << 20);
  all->add(shadow, {{"group", "default"}});
  all->add(std::make_shared<copier_probe>(), {});
  all->add(std::make_shared<worker_probe>(), {{"worker", "0"}});
  auto spaces = std::make_shared<space_table>(4);
  spaces->probe("default", "a \"quoted\\ model\"")->asked(5);
  all->add(spaces);
  return all;
}

TEST(Exposition, ServesWhatTheProbesHoldAtTheMoment) {
  auto all = serve_everything();
  auto probe = std::make_shared<tier_probe>();
  all->add(probe, {{"group", "late"}, {"tier", "host"}});
  probe->missed(2);
  auto text = scrape(all->port());
  EXPECT_NE(text.find("terrace_tier_misses_total{group=\"late\",tier=\"host\"} 2"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("terrace_request_duration_seconds_bucket{group=\"default\",verb=\"lookup\",le=\"5e-05\"} 1"),
      std::string::npos)
      << text;
  probe->missed(3);
  EXPECT_NE(scrape(all->port()).find("terrace_tier_misses_total{group=\"late\",tier=\"host\"} 5"),
            std::string::npos);
}

TEST(Exposition, ServesNothingThatIsNotDocumented) {
  std::ifstream file(TERRACE_SOURCE_ROOT "/docs/metrics.md");
  std::string documentation{std::istreambuf_iterator<char>(file), {}};
  std::istringstream lines(scrape(serve_everything()->port()));
  size_t families = 0;
  for (std::string word, name; lines >> word;)
    if (word == "HELP" && lines >> name && !name.empty()) {
      EXPECT_NE(documentation.find("| `" + name + "` |"), std::string::npos)
          << name << " is not in docs/metrics.md";
      ++families;
    }
  EXPECT_GT(families, 40u);
}

TEST(Exposition, SatisfiesPromtool) {
  if (!installed("promtool"))
    GTEST_SKIP() << "no promtool on this machine; install the package `prometheus`";
  auto all = serve_everything();
  auto [status, output] = run("promtool check metrics", scrape(all->port()));
  EXPECT_EQ(status, 0) << output;
  EXPECT_EQ(output, "");
}

TEST(Exposition, IsScrapedByARealPrometheus) {
  if (!installed("prometheus") || !installed("python3"))
    GTEST_SKIP()
        << "no prometheus or no python3 on this machine; install the packages `prometheus` and `python3`";
  auto all = serve_everything();
  auto [status, output] =
      run("python3 " TERRACE_SOURCE_ROOT "/tests/e2e/prometheus_scrape.py 127.0.0.1:" +
              std::to_string(all->port()) +
              " terrace_build_info 'terrace_tier_hits_total{group=\"tenant\",tier=\"disk\"} == 7'",
          "");
  EXPECT_EQ(status, 0) << output;
}

TEST(Exposition, SaysWhichPortIsTaken) {
  auto first = exposition::serve({.address = {"127.0.0.1", 0}});
  ASSERT_TRUE(first);
  numeric_address address{"127.0.0.1", (*first)->port()};
  auto second = exposition::serve({.address = address});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::busy);
  EXPECT_NE(second.error().text.find(address.text()), std::string::npos) << second.error().text;
}

/// The answer to a GET, its header included.
std::string get(uint16_t port, const std::string& path, const std::string& more = "") {
  return test::http(port, "GET " + path + " HTTP/1.0\r\n" + more + "\r\n");
}

TEST(Exposition, ProbesSayWhetherItServesAndLives) {
  auto served = exposition::serve({.address = {"127.0.0.1", 0}, .token = "secret"});
  ASSERT_TRUE(served);
  std::atomic<service_state> state{service_state::starting};
  std::atomic<bool> alive{true};
  (*served)->watch([&] { return state.load(); }, [&] { return alive.load(); });
  uint16_t port = (*served)->port();
  EXPECT_TRUE(get(port, "/readyz").starts_with("HTTP/1.1 503 ")) << "it starts";
  state = service_state::serving;
  EXPECT_TRUE(get(port, "/readyz").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get(port, "/healthz").starts_with("HTTP/1.1 200 "));
  state = service_state::draining;
  EXPECT_TRUE(get(port, "/readyz").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(get(port, "/healthz").starts_with("HTTP/1.1 200 ")) << "a daemon that drains lives";
  alive = false;
  EXPECT_TRUE(get(port, "/healthz").starts_with("HTTP/1.1 503 "));
}

TEST(Exposition, AsksForItsTokenInEitherWay) {
  auto served = exposition::serve({.address = {"127.0.0.1", 0}, .token = "secret"});
  ASSERT_TRUE(served);
  uint16_t port = (*served)->port();
  for (const char* path : {"/metrics", "/", "/clients.json", "/history.json", "/nothing"}) {
    for (const char* wrong : {"", "Authorization: Bearer secre\r\n", "Authorization: Bearer secret2\r\n",
                              "Authorization: Basic !!!\r\n", "Authorization: Basic c2VjcmV0\r\n",
                              "Authorization: Digest secret\r\n"})
      EXPECT_TRUE(get(port, path, wrong).starts_with("HTTP/1.1 401 ")) << path << " " << wrong;
    auto asked = get(port, path);
    EXPECT_NE(asked.find("WWW-Authenticate: Basic"), std::string::npos) << "a browser asks its user";
    EXPECT_NE(asked.find("metrics.token_file"), std::string::npos) << asked;
  }
  EXPECT_TRUE(get(port, "/metrics", "Authorization: Bearer secret\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get(port, "/", "Authorization: Basic YW55Ym9keTpzZWNyZXQ=\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get(port, "/nothing", "Authorization: Bearer secret\r\n").starts_with("HTTP/1.1 404 "));
}

TEST(Exposition, ThePageNamesNoOtherPlaceAndShowsClientsAndWarnings) {
  auto served = exposition::serve({.address = {"127.0.0.1", 0}});
  ASSERT_TRUE(served);
  uint16_t port = (*served)->port();
  auto shown = get(port, "/");
  EXPECT_NE(shown.find("Content-Type: text/html"), std::string::npos);
  EXPECT_NE(shown.find("</html>"), std::string::npos);
  EXPECT_NE(shown.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  for (const char* place : {"src=", "@import", "url(", "cdn"})
    EXPECT_EQ(shown.find(place), std::string::npos) << place;
  EXPECT_TRUE(get(port, "/clients.json").ends_with("[]")) << "before anybody has given them";
  EXPECT_TRUE(get(port, "/notices.json").ends_with("[]"));
  (*served)->show_clients([] {
    return std::vector<shown_client>{
        {.name = "\"vllm\"\n\xff", .group = "default", .pid = 7, .mean_ns = 1'000}};
  });
  (*served)->show_warnings([] { return std::vector<std::string>{"a </script> \"disk\""}; });
  auto clients = get(port, "/clients.json");
  EXPECT_NE(clients.find(R"("mean_ns":1000,"name":"\"vllm\"\n)"), std::string::npos) << clients;
  EXPECT_NE(get(port, "/notices.json").find(R"(["a </script> \"disk\""])"), std::string::npos);
}

TEST(Exposition, KeepsTheLastHourForThePage) {
  auto all = serve_everything();
  EXPECT_TRUE(get(all->port(), "/history.json").find("{\"points\":[{\"asked\":") != std::string::npos)
      << "from the start on, without anybody who looks";
}

TEST(Exposition, ReadsNoProbeAfterItsEnd) {
  auto probe = std::make_shared<tier_probe>();
  {
    auto served = exposition::serve({.address = {"127.0.0.1", 0}});
    ASSERT_TRUE(served);
    (*served)->add(probe, {});
    scrape((*served)->port());
  }
  EXPECT_EQ(probe.use_count(), 1);
}

} // namespace
} // namespace terrace::metrics
