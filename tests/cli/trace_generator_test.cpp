#include "cli/trace_generator.hpp"
#include "cli/trace_statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace terrace::cli {
namespace {

trace generated(const trace_options& options) {
  auto made = generate_trace(options);
  EXPECT_TRUE(made.has_value()) << made.error().text;
  return made.value_or(trace{});
}

TEST(TraceGenerator, SameSeedSameTrace) {
  trace_options options;
  options.seed = 7;
  EXPECT_EQ(generated(options).requests, generated(options).requests);
  trace_options other = options;
  other.seed = 8;
  EXPECT_NE(generated(options).requests, generated(other).requests);
}

TEST(TraceGenerator, WritesWhatTheLoaderAccepts) {
  trace_options options;
  options.requests = 300;
  for (const trace_request& request : generated(options).requests) {
    auto read = parse_trace_line(format_trace_line(request));
    ASSERT_TRUE(read.has_value()) << read.error().text;
    EXPECT_EQ(*read, request);
  }
}

TEST(TraceGenerator, AnIdNamesOnePrefix) {
  trace_options options;
  options.branch = 0.4;
  trace_statistics s = measure(generated(options));
  EXPECT_EQ(s.contradictions, 0U);
  EXPECT_EQ(s.requests, 1000U);
}

TEST(TraceGenerator, TimeNeverGoesBack) {
  for (auto arrivals : {arrival_kind::poisson, arrival_kind::bursty}) {
    trace_options options;
    options.arrivals = arrivals;
    uint64_t last = 0;
    for (const trace_request& request : generated(options).requests) {
      EXPECT_GE(request.timestamp_ms, last);
      last = request.timestamp_ms;
    }
  }
}

TEST(TraceGenerator, ATurnExtendsTheOneBeforeIt) {
  trace_options options;
  options.branch = 0;
  std::map<std::string, trace_request> last;
  for (const trace_request& request : generated(options).requests) {
    if (auto before = last.find(request.session_id); before != last.end()) {
      EXPECT_EQ(request.turn, before->second.turn + 1);
      EXPECT_GT(request.input_length, before->second.input_length + before->second.output_length);
      for (size_t i = 0; i < before->second.full_blocks(); ++i)
        ASSERT_EQ(request.hash_ids[i], before->second.hash_ids[i]);
    }
    last[request.session_id] = request;
  }
}

TEST(TraceGenerator, BranchesGoBackToAnEarlierTurn) {
  trace_options options;
  options.branch = 0.5;
  options.turns = 8;
  size_t back = 0;
  std::map<std::string, trace_request> last;
  for (const trace_request& request : generated(options).requests) {
    if (auto before = last.find(request.session_id); before != last.end()) {
      size_t tip = before->second.full_blocks();
      back += tip > 0 &&
              (request.full_blocks() < tip || request.hash_ids[tip - 1] != before->second.hash_ids[tip - 1]);
    }
    last[request.session_id] = request;
  }
  EXPECT_GT(back, 100U);
}

TEST(TraceGenerator, ConversationsShareTheSystemPrompts) {
  trace_options options;
  options.system_prompts = 3;
  options.system_prompt_tokens = 4096;
  options.sessions = 200;
  options.requests = 100'000;
  std::set<uint64_t> first_blocks;
  for (const trace_request& request : generated(options).requests)
    first_blocks.insert(request.hash_ids.front());
  EXPECT_EQ(first_blocks.size(), 3U);
}

TEST(TraceGenerator, MeansAreWhatWasAskedFor) {
  trace_options options;
  options.requests = 1'000'000;
  options.sessions = 4'000; // all conversations run to their end
  options.branch = 0;
  trace_statistics s = measure(generated(options));
  EXPECT_NEAR(s.output_length.mean, options.output_tokens, 0.05 * options.output_tokens);
  EXPECT_NEAR(s.turns.mean, options.turns, 0.1 * options.turns);
}

TEST(TraceGenerator, ConversationsStartAtTheRateThatWasAskedFor) {
  trace_options options;
  options.requests = 10'000;
  options.session_rate = 5;
  options.turns = 1;
  trace_statistics s = measure(generated(options));
  EXPECT_NEAR(static_cast<double>(s.conversations) / s.seconds, options.session_rate, 0.2);
}

TEST(TraceGenerator, BurstsAreBurstier) {
  trace_options options;
  options.requests = 20'000;
  options.turns = 1; // so that conversations and requests arrive at equal times
  trace_statistics poisson = measure(generated(options));
  options.arrivals = arrival_kind::bursty;
  trace_statistics bursty = measure(generated(options));
  EXPECT_NEAR(poisson.burstiness, 1, 0.2);
  EXPECT_GT(bursty.burstiness, 5);
  EXPECT_NEAR(bursty.seconds, poisson.seconds, 0.2 * poisson.seconds);
}

TEST(TraceGenerator, AgentsCallToolsAndReturnSoonWithShortAnswers) {
  trace_options options;
  options.requests = 20'000;
  options.branch = 0;
  options.agents = 0.5;
  options.hints = 1;
  double calls = 0, call_tokens = 0, pause = 0, answers = 0, over = 0;
  for (const trace_request& request : generated(options).requests) {
    EXPECT_EQ(request.session_closed, !request.think_ms.has_value());
    over += request.session_closed;
    if (request.reason != finish_reason::tool_call) {
      EXPECT_EQ(request.reason, finish_reason::stop);
      ++answers;
      continue;
    }
    EXPECT_FALSE(request.session_closed);
    ++calls;
    call_tokens += request.output_length;
    pause += *request.think_ms / 1000.0;
  }
  EXPECT_NEAR(calls / answers, 0.5 * options.tool_calls, 0.15 * options.tool_calls);
  EXPECT_NEAR(call_tokens / calls, options.call_tokens, 0.05 * options.call_tokens);
  EXPECT_GT(pause / calls,
            // Clients expect the actual time, multiplied by an error with a mean above one.
            options.tool_seconds);
  EXPECT_LT(pause / calls, 1.5 * options.tool_seconds);
  EXPECT_GT(over, 0);
}

TEST(TraceGenerator, OnlyTheShareThatWasAskedForTellsHowRequestsEnd) {
  trace_options options;
  options.requests = 5'000;
  size_t silent = 0, telling = 0;
  for (const trace_request& request : generated(options).requests)
    silent += request.reason == finish_reason::unknown && !request.session_closed && !request.think_ms;
  EXPECT_EQ(silent, 5'000U);
  options.hints = 0.3;
  for (const trace_request& request : generated(options).requests)
    telling += request.reason != finish_reason::unknown;
  EXPECT_NEAR(static_cast<double>(telling), 1'500, 400);
}

TEST(TraceGenerator, EndsWhenAllConversationsHaveEnded) {
  trace_options options;
  options.sessions = 5;
  trace made = generated(options);
  EXPECT_LT(made.requests.size(), options.requests);
  EXPECT_EQ(measure(made).conversations, 5U);
}

TEST(TraceGenerator, KeepsBelowTheLongestContext) {
  trace_options options;
  options.turns = 50;
  options.context_tokens_max = 8192;
  for (const trace_request& request : generated(options).requests)
    EXPECT_LE(request.input_length, 8192U);
}

TEST(TraceGenerator, RefusesWhatMakesNoSense) {
  auto refused = [](auto change, const std::string& text) {
    trace_options options;
    change(options);
    auto made = generate_trace(options);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, exit_code::usage);
    EXPECT_THAT(made.error().text, testing::HasSubstr(text));
  };
  refused([](trace_options& o) { o.requests = 0; }, "--requests: expected a number above 0");
  refused([](trace_options& o) { o.session_rate = -1; }, "--rate");
  refused([](trace_options& o) { o.hints = 2; }, "--agents, --hints: expected shares from 0 to 1");
  refused([](trace_options& o) { o.tool_seconds = -1; }, "--tool-seconds: expected numbers of at least 0");
  refused([](trace_options& o) { o.turns = 0; }, "--turns: expected a mean of at least 1");
  refused([](trace_options& o) { o.branch = 1.5; }, "--branch");
  refused([](trace_options& o) { o.burst_factor = 0.5; }, "--burst-factor");
  refused([](trace_options& o) { o.context_tokens_max = 100; }, "--context-max");
  refused([](trace_options& o) { o.user_tokens = 1e9; }, "--context-max");
}

} // namespace
} // namespace terrace::cli
