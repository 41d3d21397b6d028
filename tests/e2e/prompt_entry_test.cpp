// Prompts whose last logits are kept: an identical one needs no prefill.
#include "tail_client.hpp"
#include "tests/support/scrape.hpp"

#include <sstream>

namespace terrace::e2e {
namespace prompt_entry_test {

constexpr uint32_t chunk = space_chunk_tokens; // 16 tokens
const std::vector<uint64_t> cursors{3, 4};

client::space_spec prompt_space() {
  auto spec = test_space();
  spec.pools = {
      {.name = "kv", .object_bytes = 256 << 10},
      {.name = "state", .object_bytes = 64 << 10, .rule = client::hit_rule::trailing_chunks, .trailing = 1}};
  return spec;
}

std::vector<uint8_t> logits_of(uint8_t number, size_t bytes = 100'000) {
  std::vector<uint8_t> made(bytes, number);
  made.back() = static_cast<uint8_t>(number + 1);
  return made;
}

class PromptEntry : public ::testing::Test {
 protected:
  void start(daemon_options options = {}) {
    options.host = "policy = \"lru\"\n";
    options.metrics = "127.0.0.1:" + std::to_string(port_);
    daemon_ = std::make_unique<daemon_under_test>(options);
    client_ = std::make_unique<tail_client>(daemon_->socket(), prompt_space());
  }
  tail_client& by() { return *client_; }

  /// Stores its chunks, including its tail, in all pools. Not in a session.
  void store(std::span<const uint32_t> prompt) {
    auto stored = by().store_prompt(prompt, {0, 1});
    ASSERT_TRUE(stored) << stored.error().text;
  }
  result<client::saved_prompts> keep(std::span<const uint32_t> prompt, const std::vector<uint8_t>& logits) {
    client::prompt_to_save request;
    request.in = (*by()).space();
    request.what = client::prefix::of_tokens(prompt);
    request.logits = logits;
    request.cursors = cursors;
    return by()->save_prompt(request, patiently());
  }
  client::lookup_result ask(tail_client& whom, std::span<const uint32_t> prompt, bool lease = true) {
    client::lookup_request request;
    request.in = (*whom).space();
    request.what = client::prefix::of_tokens(prompt);
    request.what.tail = true;
    request.logits = true;
    request.lease = lease;
    auto found = whom->lookup(request, patiently());
    EXPECT_TRUE(found) << found.error().text;
    return found ? std::move(*found) : client::lookup_result();
  }
  double metric(const std::string& name, const std::string& label = {}) const {
    double sum = 0;
    std::istringstream lines(test::scrape(port_));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
        sum += std::stod(line.substr(line.rfind(' ')));
    return sum;
  }

  uint16_t port_ = test::free_port();
  std::unique_ptr<daemon_under_test> daemon_;
  std::unique_ptr<tail_client> client_;
};

TEST_F(PromptEntry, AnIdenticalPromptNeedsNoPrefill) {
  start();
  auto prompt = prompt_of(1, 2 * chunk + 5);
  EXPECT_TRUE(ask(by(), prompt).logits.empty());
  store(prompt);
  auto kept = keep(prompt, logits_of(7));
  ASSERT_TRUE(kept) << kept.error().text;
  EXPECT_EQ(kept->prompts, 1U);
  EXPECT_GT(kept->bytes, 100'000U);
  auto counted = by()->admin().check(patiently());
  ASSERT_TRUE(counted) << counted.error().text;
  EXPECT_EQ(counted->count, 0U) << counted->differences.front();
  EXPECT_EQ(counted->references["prompts"], 2U) << "its whole chunks, by their digests";
  EXPECT_EQ(counted->references["tails of prompts"], 1U);
  tail_client other(daemon_->socket(), prompt_space(), "another engine");
  auto found = ask(other, prompt);
  EXPECT_EQ(found.found_tokens, prompt.size());
  EXPECT_EQ(found.usable_tokens, prompt.size()) << "nothing is left to compute";
  EXPECT_EQ(found.tail_tokens, 5U);
  EXPECT_EQ(found.logits, logits_of(7));
  EXPECT_EQ(found.cursors, cursors);
  other.check(found.held.id(), prompt, found);
  auto longer = ask(other, joined(prompt, {1}));
  EXPECT_TRUE(longer.logits.empty());
  EXPECT_EQ(longer.found_tokens, 2 * chunk) << "only whole chunks are shared";
  EXPECT_EQ(metric("terrace_prompts"), 1);
  EXPECT_EQ(metric("terrace_prompt_lookups_total", "found"), 1);
  EXPECT_EQ(metric("terrace_prompt_lookups_total", "missed"), 2);
}

TEST_F(PromptEntry, IsFoundInASessionToo) {
  start();
  auto session = by().open();
  auto prompt = prompt_of(1, chunk + 5);
  ASSERT_TRUE(by().store_turn(session, prompt, 0, 0, {0, 1}));
  client::prompt_to_save request;
  request.in = (*by()).space();
  request.what = session.continued(prompt, 0);
  auto logits = logits_of(9);
  request.logits = logits;
  ASSERT_TRUE(by()->save_prompt(request, patiently()));
  client::lookup_request wanted;
  wanted.what.tail = true;
  wanted.logits = true;
  auto found = session.lookup(prompt, 0, wanted, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->logits, logits);
  EXPECT_EQ(found->usable_tokens, prompt.size());
  EXPECT_EQ(session.tokens(), prompt.size());
  // The turn continues: its end has another tail, and the prompt's stays.
  auto turn = joined(prompt, prompt_of(2, 3));
  by().turn(session, turn, prompt.size());
  EXPECT_EQ(metric("terrace_tails"), 2);
  EXPECT_EQ(ask(by(), prompt).logits, logits);
}

TEST_F(PromptEntry, NeverKeepsItsChunksFromEviction) {
  start();
  auto prompt = prompt_of(1, chunk + 5);
  store(prompt);
  ASSERT_TRUE(keep(prompt, logits_of(7)));
  tester presser(daemon_->socket(), "presser");
  for (uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(presser.store(chain_of(seed, 8)), 8U);
  auto found = ask(by(), prompt);
  EXPECT_TRUE(found.logits.empty());
  EXPECT_EQ(found.usable_tokens, 0U);
  store(prompt); // computed again
  EXPECT_EQ(ask(by(), prompt).logits, logits_of(7));
}

TEST_F(PromptEntry, HasAllChunksOrIsNotKept) {
  start();
  auto prompt = prompt_of(1, chunk + 5);
  ASSERT_TRUE(by().store_prompt(prompt, {0}));
  auto refused = keep(prompt, logits_of(7));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::not_found);
  EXPECT_NE(refused.error().text.find("pool state"), std::string::npos) << refused.error().text;
  EXPECT_EQ(metric("terrace_prompts"), 0);
}

TEST_F(PromptEntry, PromptsHaveBounds) {
  start({.connection = "group_bytes = \"16MiB\"\n"}); // 4 prompts, 4 MiB
  std::vector<std::vector<uint32_t>> prompts;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    prompts.push_back(prompt_of(seed, chunk + 5));
    store(prompts.back());
    ASSERT_TRUE(keep(prompts.back(), logits_of(static_cast<uint8_t>(seed))));
    if (seed == 4) {
      EXPECT_FALSE(ask(by(), prompts[0], false).logits.empty()) << "now the second one is the coldest";
    }
  }
  EXPECT_TRUE(ask(by(), prompts[1], false).logits.empty());
  EXPECT_EQ(ask(by(), prompts[0], false).logits, logits_of(1));
  EXPECT_EQ(ask(by(), prompts[4], false).logits, logits_of(5));
  EXPECT_EQ(metric("terrace_prompts_evicted_total"), 1);
  EXPECT_TRUE(eventually([&] { return metric("terrace_tails") == 4; })) << "its tail has gone with it";
  auto large = keep(prompts[0], logits_of(1, 5 * mebibyte));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, errc::no_space);
  auto too_large = keep(prompts[0], logits_of(1, 8 * mebibyte + 1));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, errc::bad_request);
}

TEST_F(PromptEntry, AClearForgetsIt) {
  start();
  auto prompt = prompt_of(1, chunk + 5);
  store(prompt);
  ASSERT_TRUE(keep(prompt, logits_of(7)));
  ASSERT_TRUE(by()->admin().clear(&(*by()).space(), patiently()));
  EXPECT_EQ(metric("terrace_prompts"), 0);
  store(prompt);
  EXPECT_TRUE(ask(by(), prompt).logits.empty());
}

} // namespace prompt_entry_test
} // namespace terrace::e2e
