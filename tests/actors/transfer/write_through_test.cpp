// Two passages write the same objects down.
#include "actors/transfer/write_through_actor.hpp"
#include "group_fixture.hpp"
#include "runtime/answer.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <functional>
#include <utility>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

/// A tier that is interrupted in its handler of a publication: whoever waited for the objects has been answered, whoever
/// has them published has not.
struct interrupted_tier {
  tier_actor real;
  size_t published = 0;
  std::vector<std::function<void()>> rest; ///< of the handler, and what is handled after it
};
using interrupted_ptr = std::shared_ptr<interrupted_tier>;

caf::behavior interrupted(caf::event_based_actor* self, const interrupted_ptr& tier) {
  return {
      [=](const probe_request& request) { return self->delegate(tier->real, request); },
      [=](const acquire_request& request) { return self->delegate(tier->real, request); },
      [=](const await_request& request) { return self->delegate(tier->real, request); },
      [=](const publish_request& request) {
        auto reply = make_answer<publish_answer>(self);
        self->request(tier->real, caf::infinite, request).then([=](const publish_answer& answer) {
          ++tier->published;
          tier->rest.emplace_back([=]() mutable { reply.deliver(answer); });
        });
        return reply.promise();
      },
      [=](const confirm_request& request) {
        auto reply = make_answer<confirm_answer>(self);
        tier->rest.emplace_back([=]() mutable {
          reply.deliver({{}, std::vector<bool>(request.ids.size())});
        });
        return reply.promise();
      },
      [=](open_gate) {
        for (auto& step : std::exchange(tier->rest, {}))
          step();
      },
  };
}

struct at_end final : credit_sink {
  explicit at_end(std::function<void()> done) : what(std::move(done)) {}
  void give_back(uint64_t) override { what(); }
  std::function<void()> what;
};

struct WriteThrough : group_fixture {
  interrupted_ptr tier = std::make_shared<interrupted_tier>();
  caf::actor front;
  write_through_actor writes;

  WriteThrough() {
    start({.host_objects = 8, .disk_objects = 8, .demotion = demotion_mode::off});
    store(0, 2);
    tier->real = disk_tier();
    front = sys.spawn(interrupted, tier);
    write_through_arguments down;
    down.from = group->tiers().front();
    down.to = *group->disk();
    down.to.tier = caf::actor_cast<tier_actor>(front);
    down.policy = group->policy;
    down.memory = group->memory;
    writes = spawn_write_through(sys, std::move(down));
    settle();
  }
  void TearDown() override {
    stop(writes);
    stop(front);
    group_fixture::TearDown();
  }
  void write(hold_ptr held, std::function<void()> ended) {
    auto credit = std::make_shared<const write_credit>(std::make_shared<at_end>(std::move(ended)), 0);
    caf::anon_send(writes,
                   write_through_notice{in, chain(0, 2, payload), std::move(held), std::move(credit)});
  }
};

} // namespace

// A move asks what is left in host memory when its own passage has ended.
TEST_F(WriteThrough, ThePassageThatWaitsEndsAfterTheOneThatWrites) {
  std::vector<int> ended;
  auto first = hold(group->host, 0, 2), second = hold(group->host, 0, 2);
  std::weak_ptr<object_hold> first_hold = first;
  bool held = true;
  write(std::move(first), [&] { ended.push_back(1); });
  write(std::move(second), [&] {
    held = !first_hold.expired();
    ended.push_back(2);
  });
  settle();
  ASSERT_EQ(tier->published, 1u);
  EXPECT_TRUE(ended.empty()) << "the first has not been told that its objects are published";
  EXPECT_EQ(report(group->host).held_objects, 2u);

  caf::anon_send(front, open_gate{});
  settle();
  EXPECT_EQ(ended, (std::vector<int>{1, 2}));
  EXPECT_FALSE(held);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(tier->published, 1u) << "the second writes nothing";
}
