#include "actors/supervision/metrics_actor.hpp"

#include "tests/support/actor_fixture.hpp"
#include "tests/support/scrape.hpp"

namespace terrace::actors {
namespace {

class MetricsActor : public test::actor_fixture {};

TEST_F(MetricsActor, ServesTheSourcesItIsGivenUntilItEnds) {
  auto serving = metrics::exposition::serve({.address = {"127.0.0.1", 0}});
  ASSERT_TRUE(serving) << serving.error().text;
  uint16_t port = (*serving)->port();
  auto actor = spawn_metrics(sys, std::move(*serving));
  caf::anon_send(actor, add_source{[](metrics::sample_sink& sink) {
                   sink.gauge("terrace_answer", "Of everything.", {}, 42);
                 }});
  settle();
  EXPECT_NE(test::scrape(port).find("terrace_answer 42"), std::string::npos);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  settle();
  EXPECT_EQ(test::scrape(port), "no connection");
}

} // namespace
} // namespace terrace::actors
