// Which copiers are asked, and how many for one copy.
#include "actors/transfer/copier_pool.hpp"

#include "tests/support/actor_fixture.hpp"
#include "transfer/copy_line.hpp"

using namespace terrace;
using namespace terrace::actors;

namespace {

struct CopierPool : terrace::test::actor_fixture {
  void start(size_t copiers) {
    std::vector<copier_pool::member> members;
    for (size_t i = 0; i < copiers; ++i) {
      loads.push_back(std::make_shared<copier_load>());
      members.push_back({spawn_copier(sys, {.load = loads.back(), .detached = false}), loads.back()});
    }
    pool.emplace(std::move(members));
  }
  void TearDown() override {
    for (const auto& one : pool->all())
      stop(one.copier);
  }
  size_t number_of(const copier_actor& copier) const {
    for (size_t i = 0; i < pool->all().size(); ++i)
      if (pool->all()[i].copier == copier)
        return i;
    return SIZE_MAX;
  }
  std::vector<size_t> some(size_t parts_max) {
    std::vector<size_t> numbers;
    for (const copier_actor& one : pool->some(parts_max))
      numbers.push_back(number_of(one));
    return numbers;
  }
  size_t next() { return number_of(pool->next()); }

  std::vector<std::shared_ptr<copier_load>> loads;
  std::optional<copier_pool> pool;
};

using numbers = std::vector<size_t>;

} // namespace

TEST_F(CopierPool, TheyTakeTurns) {
  start(3);
  EXPECT_EQ((numbers{next(), next(), next(), next()}), (numbers{0, 1, 2, 0}));
}

TEST_F(CopierPool, WhoIsIdleComesBeforeWhoIsNot) {
  start(4);
  loads[0]->begins();
  loads[1]->begins();
  EXPECT_EQ((numbers{next(), next()}), (numbers{2, 2})) << "of 0 and 1 it would be the turn";
  loads[2]->begins();
  loads[3]->begins();
  EXPECT_EQ((numbers{next(), next()}), (numbers{2, 3})) << "all are busy";
  loads[1]->ends();
  EXPECT_EQ(next(), 1u);
}

TEST_F(CopierPool, ACopyGetsAllIfNobodyElseIsServed) {
  start(4);
  EXPECT_EQ(some(9), (numbers{0, 1, 2, 3}));
  EXPECT_EQ(some(3), (numbers{0, 1, 2}));
  EXPECT_EQ(some(2), (numbers{3, 0}));
}

TEST_F(CopierPool, BesideOthersItGetsIdleOnesAndAtMostHalf) {
  start(8);
  loads[1]->begins();
  EXPECT_EQ(some(9), (numbers{0, 2, 3, 4}));
  EXPECT_EQ(some(9), (numbers{4, 5, 6, 7}));
  for (size_t i : {0, 3, 4, 5, 6})
    loads[i]->begins();
  EXPECT_EQ(some(9), (numbers{2, 7}));
  loads[7]->begins();
  EXPECT_EQ(some(9), (numbers{2}));
  loads[2]->begins();
  EXPECT_EQ(some(9).size(), 1u) << "all are busy";
}

TEST_F(CopierPool, OneThatCannotBeDividedTakesATurn) {
  start(2);
  EXPECT_EQ(some(1), (numbers{0}));
  EXPECT_EQ(some(1), (numbers{1}));
  loads[0]->begins();
  EXPECT_EQ(some(1), (numbers{1}));
  EXPECT_EQ(some(8), (numbers{1})) << "half of two";
}

TEST_F(CopierPool, ACopierIsBusyFromItsFirstRequestToItsLastAnswer) {
  start(1);
  const copier_actor copier = pool->next();
  std::vector<bool> idle;
  auto ask = [&](caf::event_based_actor* self) {
    self->request(copier, caf::infinite, copy_request{.runs = std::make_shared<const scatter_gather>()})
        .then([&](const copy_answer&) { idle.push_back(loads[0]->idle()); });
  };
  sys.spawn([&](caf::event_based_actor* self) {
    ask(self);
    ask(self);
  });
  EXPECT_TRUE(loads[0]->idle());
  settle();
  EXPECT_EQ(idle, (std::vector<bool>{true, true})) << "before it is answered";
}
