// Which copiers are asked, and how many for one copy.
#include "actors/transfer/copier_actor.hpp"

#include "tests/support/actor_fixture.hpp"
#include "transfer/copy_queue.hpp"

using namespace terrace;
using namespace terrace::actors;

namespace {

struct CopierPool : terrace::test::actor_fixture {
  void start(size_t copiers) {
    loads.clear();
    std::vector<copier_pool::member> members;
    for (size_t i = 0; i < copiers; ++i) {
      loads.push_back(std::make_shared<copier_load>());
      members.push_back({spawn_copier(sys, {.load = loads.back(), .detached = false}), loads.back()});
      spawned.push_back(members.back().copier);
    }
    pool.emplace(std::move(members));
  }
  void TearDown() override {
    for (const copier_actor& one : spawned)
      stop(one);
  }
  size_t number_of(const copier_actor& copier) const {
    for (size_t i = 0; i < pool->all().size(); ++i)
      if (pool->all()[i].copier == copier)
        return i;
    return SIZE_MAX;
  }
  size_t next() { return number_of(pool->next()); }

  std::vector<std::shared_ptr<copier_load>> loads;
  std::vector<copier_actor> spawned;
  std::optional<copier_pool> pool;
};

using numbers = std::vector<size_t>;

} // namespace

TEST_F(CopierPool, ThoseWithTheFewestRequestsTakeTurns) {
  start(3);
  EXPECT_EQ((numbers{next(), next(), next()}), (numbers{0, 1, 2}));
  loads[1]->ends();
  EXPECT_EQ(next(), 1u) << "it is idle";
  EXPECT_EQ((numbers{next(), next(), next()}), (numbers{1, 2, 0})) << "all have one";
  loads[2]->ends();
  loads[2]->ends();
  EXPECT_EQ((numbers{next(), next()}), (numbers{2, 2})) << "the others have two";
}

TEST_F(CopierPool, OnesThatNobodyCountsTakeTurns) {
  start(3);
  pool.emplace(std::vector<copier_pool::member>{
      {pool->all()[0].copier, nullptr}, {pool->all()[1].copier, nullptr}, {pool->all()[2].copier, nullptr}});
  EXPECT_EQ((numbers{next(), next(), next(), next()}), (numbers{0, 1, 2, 0}));
}

TEST_F(CopierPool, ACopyIsDividedAmongAllIfNobodyIsServed) {
  start(4);
  EXPECT_EQ(pool->parts_now(9), 4u);
  EXPECT_EQ(pool->parts_now(3), 3u);
  EXPECT_EQ(pool->parts_now(1), 1u);
}

TEST_F(CopierPool, BesideOthersItGetsIdleOnesAndAtMostHalf) {
  start(8);
  next();
  EXPECT_EQ(pool->parts_now(9), 4u);
  EXPECT_EQ(pool->parts_now(2), 2u);
  for (int busy = 2; busy <= 5; ++busy)
    next();
  EXPECT_EQ(pool->parts_now(9), 3u) << "the others are busy";
  for (int busy = 6; busy <= 8; ++busy)
    next();
  EXPECT_EQ(pool->parts_now(9), 1u);
}

TEST_F(CopierPool, AFewDivideNothing) {
  for (size_t copiers : {1, 2, 3}) {
    start(copiers);
    EXPECT_EQ(pool->parts_now(9), 1u);
  }
}

TEST_F(CopierPool, ACopierIsIdleOnceItAnswersItsLastRequest) {
  start(1);
  std::vector<uint32_t> requests;
  sys.spawn([&](caf::event_based_actor* self) {
    for (int i = 0; i < 2; ++i)
      self->request(pool->next(), caf::infinite,
                    copy_request{.runs = std::make_shared<const scatter_gather>()})
          .then([&](const copy_answer&) { requests.push_back(loads[0]->requests()); });
  });
  settle();
  EXPECT_EQ(requests, (std::vector<uint32_t>{0, 0})) << "before it is answered";
  EXPECT_EQ(pool->parts_now(9), 1u);
}
