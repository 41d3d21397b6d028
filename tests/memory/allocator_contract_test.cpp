#include "tests/memory/allocator_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

constexpr uint64_t kib = 1024;

class AllocatorContract : public ::testing::TestWithParam<std::string_view> {
 protected:
  static allocator_maker maker(const allocator_options& options) {
    return [options] { return make_allocator(GetParam(), options).value(); };
  }
  static void check(const allocator_options& options) {
    uint64_t seed = test_seed();
    SCOPED_TRACE(seed_text(seed));
    auto broken = broken_promise(maker(options), options, seed, 3'000);
    EXPECT_FALSE(broken) << *broken;
  }
};

TEST_P(AllocatorContract, HoldsInASmallArena) {
  check({.capacity_bytes = 256 * kib, .alignment_bytes = 4096, .boundary_bytes = 0, .slot_bytes = 5000});
}

TEST_P(AllocatorContract, HoldsWithBoundaries) {
  check(
      {.capacity_bytes = 300 * kib, .alignment_bytes = 512, .boundary_bytes = 64 * kib, .slot_bytes = 5000});
}

TEST_P(AllocatorContract, HoldsWhenTheBoundaryIsNoMultipleOfTheSlot) {
  check({.capacity_bytes = 1030 * kib,
         .alignment_bytes = 1024,
         .boundary_bytes = 7 * kib,
         .slot_bytes = 3 * kib});
}

TEST_P(AllocatorContract, HoldsWhenTheBoundaryIsLargerThanTheArena) {
  check(
      {.capacity_bytes = 128 * kib, .alignment_bytes = 64, .boundary_bytes = 1ULL << 30, .slot_bytes = 100});
}

TEST_P(AllocatorContract, GivesNothingForAnEmptyBatch) {
  auto a = make_allocator(GetParam(), {.capacity_bytes = 64 * kib, .slot_bytes = 4 * kib}).value();
  EXPECT_TRUE(a->allocate({})->empty());
  EXPECT_EQ(a->usage().used_bytes, 0u);
  a->free({});
}

TEST_P(AllocatorContract, RefusesWhatCanNeverFit) {
  auto a = make_allocator(GetParam(), {.capacity_bytes = 64 * kib, .slot_bytes = 4 * kib}).value();
  for (uint64_t size : {uint64_t{0}, a->largest_possible() + 1, ~uint64_t{0}}) {
    auto taken = a->allocate({&size, 1});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, errc::bad_request);
    EXPECT_NE(taken.error().text.find(std::to_string(a->largest_possible())), std::string::npos);
  }
}

TEST_P(AllocatorContract, RefusesOptionsThatContradictEachOther) {
  const allocator_options wrong[] = {
      {.capacity_bytes = 0, .slot_bytes = 4096},
      {.capacity_bytes = 4097, .slot_bytes = 4096},
      {.capacity_bytes = 8192, .alignment_bytes = 0, .slot_bytes = 4096},
      {.capacity_bytes = 8192, .alignment_bytes = 3, .slot_bytes = 4096},
      {.capacity_bytes = 8192, .boundary_bytes = 4097, .slot_bytes = 4096},
      {.capacity_bytes = 8192, .slot_bytes = 4096, .reserved_bytes = 4097},
      {.capacity_bytes = 8192, .slot_bytes = 4096, .reserved_bytes = 8192},
  };
  for (auto& options : wrong) {
    auto made = make_allocator(GetParam(), options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, errc::bad_request);
    EXPECT_NE(made.error().text.find("expected"), std::string::npos) << made.error().text;
  }
}

TEST_P(AllocatorContract, DiesRatherThanFreeTwice) {
  auto a = make_allocator(GetParam(), {.capacity_bytes = 64 * kib, .slot_bytes = 4 * kib}).value();
  uint64_t size = 4096;
  auto taken = a->allocate({&size, 1}).value();
  a->free(taken);
  EXPECT_DEATH(a->free(taken), "freed twice");
}

TEST_P(AllocatorContract, GrowsBehindAGapAndRetiresWhatIsBeforeIt) {
  // The last segment has 8 KiB, then 8 KiB belong to nobody, then 16 KiB more are added.
  auto a = make_allocator(GetParam(), {.capacity_bytes = 40 * kib,
                                       .boundary_bytes = 16 * kib,
                                       .slot_bytes = 4 * kib,
                                       .small_percent = 10})
               .value();
  EXPECT_FALSE(a->grow(16 * kib, 4 * kib)) << "the gap ends before a boundary";
  EXPECT_FALSE(a->grow(0, 8 * kib));
  ASSERT_TRUE(a->grow(16 * kib, 8 * kib));
  EXPECT_EQ(a->usage().capacity_bytes, 56 * kib);
  std::vector<uint64_t> all(14, 4 * kib);
  auto taken = a->allocate(all);
  ASSERT_TRUE(taken) << taken.error().text;
  for (const extent& e : *taken)
    EXPECT_TRUE(e.offset < 40 * kib || e.offset >= 48 * kib) << e.offset;
  EXPECT_FALSE(a->retire({32 * kib, 12 * kib})) << "some of it is gap";
  ASSERT_TRUE(a->retire({32 * kib, 8 * kib}));
  EXPECT_EQ(a->used_in({32 * kib, 8 * kib}), 8 * kib);
  EXPECT_EQ(a->usage().capacity_bytes, 56 * kib) << "objects leave first";
  a->free(*taken);
  EXPECT_EQ(a->usage().capacity_bytes, 48 * kib);
  EXPECT_EQ(a->used_in({32 * kib, 8 * kib}), 0u);
  EXPECT_FALSE(a->retire({32 * kib, 8 * kib}));
  EXPECT_TRUE(a->retire({48 * kib, 16 * kib}));
  EXPECT_EQ(a->usage().capacity_bytes, 32 * kib);
}

INSTANTIATE_TEST_SUITE_P(Registry, AllocatorContract, ::testing::ValuesIn(allocator_names()),
                         [](const auto& which) { return std::string(which.param); });

TEST(AllocatorRegistry, NamesTheKnownOnesForAnUnknownName) {
  auto made = make_allocator("unheard_of", {.capacity_bytes = 4096});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::bad_request);
  for (auto name : allocator_names())
    EXPECT_NE(made.error().text.find(name), std::string::npos);
}

// The canaries: each breaks one promise of a real allocator, and the check must notice.
class canary : public allocator {
 public:
  enum class flaw {
    none,
    overlaps,
    forgets_boundary,
    miscounts,
    leaks_on_failure,
    leaks_on_free,
    retires_nothing,
    chooses_too_much,
    adopts_blindly,
    expects_nothing,
    forgets_what_is_live
  };
  canary(flaw f, const allocator_options& options) : flaw_(f) {
    auto inner = options;
    if (f == flaw::forgets_boundary)
      inner.boundary_bytes = 0;
    inner_ = make_allocator("free_list", inner).value();
  }
  std::string_view name() const override { return "canary"; }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override {
    auto taken = inner_->allocate(sizes);
    if (!taken && flaw_ == flaw::leaks_on_failure && sizes.size() > 1)
      (void) inner_->allocate(sizes.first(1));
    if (taken && flaw_ == flaw::overlaps && taken->size() > 1)
      (*taken)[1].offset = (*taken)[0].offset;
    return taken;
  }
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override {
    return flaw_ == flaw::adopts_blindly ? result<void>{} : inner_->adopt(extents, requested);
  }
  void free(std::span<const extent> extents) override {
    inner_->free(flaw_ == flaw::leaks_on_free && extents.size() > 3 ? extents.first(3) : extents);
  }
  uint64_t physical_size(uint64_t bytes) const override { return inner_->physical_size(bytes); }
  uint64_t largest_possible() const override { return inner_->largest_possible(); }
  allocator_usage usage() const override {
    auto usage = inner_->usage();
    if (flaw_ == flaw::miscounts)
      usage.requested_bytes = usage.used_bytes;
    return usage;
  }
  void expect(uint64_t bytes) override { inner_->expect(flaw_ == flaw::expects_nothing ? 0 : bytes); }
  result<void> grow(uint64_t bytes, uint64_t gap) override { return inner_->grow(bytes, gap); }
  result<void> retire(extent range) override {
    return flaw_ == flaw::retires_nothing ? result<void>{} : inner_->retire(range);
  }
  uint64_t used_in(extent range) const override { return inner_->used_in(range); }
  uint64_t live_size(uint64_t offset) const override {
    return flaw_ == flaw::forgets_what_is_live && offset != 0 ? 0 : inner_->live_size(offset);
  }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override {
    auto chosen = inner_->choose(sizes, candidates);
    if (flaw_ == flaw::chooses_too_much && chosen && !chosen->empty())
      for (chosen->clear(); chosen->size() < candidates.size();)
        chosen->push_back(chosen->size());
    return chosen;
  }

 private:
  flaw flaw_;
  std::unique_ptr<allocator> inner_;
};

TEST(AllocatorCanary, EveryBrokenAllocatorFailsTheCheck) {
  allocator_options options{.capacity_bytes = 256 * kib, .alignment_bytes = 1024, .boundary_bytes = 64 * kib};
  auto check = [&](canary::flaw flaw) {
    return broken_promise([&] { return std::make_unique<canary>(flaw, options); }, options, 1, 3'000);
  };
  EXPECT_FALSE(check(canary::flaw::none));
  EXPECT_TRUE(check(canary::flaw::overlaps));
  EXPECT_TRUE(check(canary::flaw::forgets_boundary));
  EXPECT_TRUE(check(canary::flaw::miscounts));
  EXPECT_TRUE(check(canary::flaw::leaks_on_failure));
  EXPECT_TRUE(check(canary::flaw::leaks_on_free));
  EXPECT_TRUE(check(canary::flaw::retires_nothing));
  EXPECT_TRUE(check(canary::flaw::chooses_too_much));
  EXPECT_TRUE(check(canary::flaw::adopts_blindly));
  EXPECT_TRUE(check(canary::flaw::expects_nothing));
  EXPECT_TRUE(check(canary::flaw::forgets_what_is_live));
}

} // namespace
} // namespace terrace::test
