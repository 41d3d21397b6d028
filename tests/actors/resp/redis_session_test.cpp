// What a client says of itself, and asks of the server.
#include "actors/resp/redis_session.hpp"

#include <gtest/gtest.h>

namespace terrace::resp {
namespace {

std::string say(redis_session& client, std::vector<std::string_view> words) {
  std::string reply;
  const command_row* row = find_command(words.front());
  if (client.may_call(row, words.front(), words.size(), reply))
    client.serve(row->command, words, reply, [] { return std::string("# Server"); });
  return reply;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(RedisSession, PingEchoSelectAndQuit) {
  redis_session client("", 7);
  EXPECT_EQ(say(client, {"ping"}), "+PONG\r\n");
  EXPECT_EQ(say(client, {"PING", "x"}), "$1\r\nx\r\n");
  EXPECT_EQ(say(client, {"echo", "hello"}), "$5\r\nhello\r\n");
  EXPECT_EQ(say(client, {"SELECT", "0"}), "+OK\r\n");
  EXPECT_TRUE(has(say(client, {"SELECT", "1"}), "-ERR DB index is out of range"));
  EXPECT_EQ(say(client, {"INFO", "server"}), "$8\r\n# Server\r\n");
  EXPECT_FALSE(client.leaves());
  EXPECT_EQ(say(client, {"QUIT"}), "+OK\r\n");
  EXPECT_TRUE(client.leaves());
}

TEST(RedisSession, WithAPasswordNothingGoesBeforeIt) {
  redis_session client("secret", 7);
  EXPECT_FALSE(client.admitted());
  for (std::string_view command : {"PING", "INFO", "COMMAND"})
    EXPECT_TRUE(has(say(client, {command}), "-NOAUTH")) << command;
  EXPECT_TRUE(has(say(client, {"HELLO", "3"}), "-NOAUTH"));
  for (std::string_view wrong : {"", "s", "secre", "secrets", "Secret"})
    EXPECT_TRUE(has(say(client, {"AUTH", wrong}), "-WRONGPASS")) << wrong;
  EXPECT_TRUE(has(say(client, {"AUTH", "admin", "secret"}), "-WRONGPASS"));
  EXPECT_TRUE(has(say(client, {"HELLO", "3", "AUTH", "default", "wrong"}), "-WRONGPASS"));
  EXPECT_FALSE(client.admitted());
  EXPECT_EQ(client.in(), version::resp2);
  EXPECT_EQ(say(client, {"AUTH", "default", "secret"}), "+OK\r\n");
  EXPECT_TRUE(client.admitted());
  redis_session other("secret", 8);
  EXPECT_TRUE(say(other, {"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"}).starts_with("%7\r\n"));
  EXPECT_TRUE(other.admitted());
  EXPECT_EQ(other.name(), "me");
}

TEST(RedisSession, NothingOfATransactionIsCarriedOut) {
  redis_session client("", 7);
  EXPECT_TRUE(
      has(say(client, {"MULTI"}), "-ERR 'MULTI' was not carried out: this server has no transactions"));
  std::string reply;
  EXPECT_FALSE(client.may_call(find_command("SET"), "SET", 3, reply));
  EXPECT_TRUE(has(reply, "-ERR 'SET' was not carried out") && has(reply, "transaction=False")) << reply;
  EXPECT_TRUE(has(say(client, {"exec"}), "-EXECABORT Transaction discarded"));
  EXPECT_EQ(say(client, {"PING"}), "+PONG\r\n");
  EXPECT_TRUE(has(say(client, {"EXEC"}), "-ERR unknown command")) << "none has begun";
  say(client, {"MULTI"});
  EXPECT_EQ(say(client, {"QUIT"}), "+OK\r\n");
  EXPECT_TRUE(client.leaves());
}

TEST(RedisSession, HelloChoosesTheVersion) {
  redis_session client("", 7);
  EXPECT_TRUE(say(client, {"HELLO"}).starts_with("*14\r\n"));
  auto third = say(client, {"HELLO", "3"});
  EXPECT_TRUE(third.starts_with("%7\r\n") && has(third, "$5\r\nproto\r\n:3\r\n") &&
              has(third, "$2\r\nid\r\n:7\r\n"));
  EXPECT_EQ(client.in(), version::resp3);
  EXPECT_TRUE(has(say(client, {"HELLO", "4"}), "-NOPROTO"));
  EXPECT_TRUE(has(say(client, {"HELLO", "2", "WHAT"}), "-ERR Syntax error"));
  EXPECT_EQ(client.in(), version::resp3);
}

TEST(RedisSession, ClientsNameThemselves) {
  redis_session client("", 7);
  EXPECT_EQ(say(client, {"CLIENT", "GETNAME"}), "$-1\r\n");
  EXPECT_EQ(say(client, {"CLIENT", "SETNAME", "worker-1"}), "+OK\r\n");
  EXPECT_EQ(say(client, {"CLIENT", "GETNAME"}), "$8\r\nworker-1\r\n");
  EXPECT_TRUE(has(say(client, {"CLIENT", "SETNAME", "a b"}), "-ERR"));
  EXPECT_TRUE(has(say(client, {"CLIENT", "SETNAME", std::string(300, 'x')}), "-ERR"));
  EXPECT_EQ(say(client, {"CLIENT", "SETINFO", "LIB-NAME", "redis-py"}), "+OK\r\n");
  EXPECT_EQ(say(client, {"CLIENT", "ID"}), ":7\r\n");
  EXPECT_TRUE(has(say(client, {"CLIENT", "TRACKING", "on"}), "-ERR unknown subcommand"));
}

TEST(RedisSession, ListsItsCommands) {
  redis_session client("", 7);
  EXPECT_EQ(say(client, {"COMMAND", "COUNT"}), ":" + std::to_string(commands - 1) + "\r\n");
  auto all = say(client, {"COMMAND"});
  for (const command_row& row : command_table())
    EXPECT_TRUE(has(all, "\r\n" + std::string(row.name) + "\r\n")) << row.name;
  EXPECT_TRUE(say(client, {"COMMAND", "INFO", "get", "nothing"}).ends_with("$-1\r\n"));
  EXPECT_EQ(say(client, {"COMMAND", "DOCS"}), "*0\r\n");
  EXPECT_EQ(say(client, {"CONFIG", "GET", "save"}), "*0\r\n");
  EXPECT_TRUE(has(say(client, {"CONFIG", "SET", "save", ""}), "-ERR"));
}

TEST(RedisSession, RefusesWhatItDoesNotKnowAndWrongCounts) {
  redis_session client("", 7);
  EXPECT_TRUE(has(say(client, {"FLUSHALL"}), "-ERR unknown command 'FLUSHALL'"));
  EXPECT_TRUE(has(say(client, {"GET"}), "-ERR wrong number of arguments for 'get'"));
  EXPECT_TRUE(has(say(client, {"GET", "a", "b"}), "-ERR wrong number"));
  EXPECT_TRUE(has(say(client, {"MSET", "a", "1", "b"}), "-ERR wrong number"));
  EXPECT_TRUE(has(say(client, {std::string_view("a\r\nb")}), "-ERR unknown command 'a  b'"));
}

} // namespace
} // namespace terrace::resp
