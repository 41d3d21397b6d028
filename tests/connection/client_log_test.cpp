#include "connection/client_log.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;

namespace {

struct ClientLog : ::testing::Test {
  std::shared_ptr<client_state> client = std::make_shared<client_state>();
  std::vector<std::string> lines;
  bool detailed = false;
  client_log log{client, sinks()};

  ClientLog() {
    client->id = connection_id{7};
    client->pid = 42;
  }
  client_log_lines sinks() {
    client_log_lines to;
    to.info = [this](const std::string& line) { lines.push_back(line); };
    to.detail.wanted = [this](detail_log::level) { return detailed; };
    to.detail.write = [this](detail_log::level, const std::string& line) { lines.push_back(line); };
    to.ends = std::make_shared<shared_log_limit>();
    to.leases = std::make_shared<shared_log_limit>();
    return to;
  }
};

} // namespace

TEST_F(ClientLog, NamesTheClient) {
  log.info("holds a lease");
  client->set_name("engine\n");
  log.info("holds a lease");
  EXPECT_EQ(lines[0], "connection 7 (pid 42) holds a lease");
  EXPECT_EQ(lines[1].find('\n'), std::string::npos) << "what a client says of itself is shown printable";
  EXPECT_NE(lines[1].find("engine"), std::string::npos);
}

TEST_F(ClientLog, ManyEndsAreLeftOut) {
  for (int i = 0; i < 100; ++i)
    log.end("ends", {});
  EXPECT_LT(lines.size(), 100u);
}

TEST_F(ClientLog, ManyOldLeasesAreLeftOutAndHideNoEnd) {
  for (int i = 0; i < 100; ++i)
    log.old_lease(4, {});
  EXPECT_EQ(lines.front(), "connection 7 (pid 42) holds a lease on 4 chunks for longer than twice "
                           "connection.request_deadline");
  EXPECT_LT(lines.size(), 100u);
  size_t before = lines.size();
  log.end("ends", {});
  EXPECT_EQ(lines.size(), before + 1);
}

TEST_F(ClientLog, DetailsAreMadeOnlyIfTheyAreWritten) {
  bool made = false;
  auto text = [&] {
    made = true;
    return std::string("has connected");
  };
  log.debug(text);
  EXPECT_FALSE(made);
  detailed = true;
  log.debug(text);
  EXPECT_TRUE(made);
  log.answered(3, protocol::kind::lookup, errc::ok, std::chrono::microseconds(12), "t1");
  EXPECT_EQ(lines.back(), "connection 7 (pid 42) request 3: lookup answered ok after 12 us (trace t1)");
}
