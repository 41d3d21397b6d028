// Reads of a remote store that nobody waits for any longer.
#include "played_store.hpp"

namespace terrace::actors {
namespace late_reads_test {

class LateReads : public played_store_test::PlayedStore {
 protected:
  static constexpr size_t count = 12; ///< more than are asked for at a time
  static constexpr uint64_t bytes = 512 << 10;

  /// Objects that the store has.
  LateReads() {
    memory_.resize(count * (object_header_bytes + bytes));
    EXPECT_EQ((*ask<move_answer>(write_request{moved()}))->outcomes, all(move_outcome::done));
  }
  moved_objects moved() {
    moved_objects made;
    made.space = space_;
    for (size_t i = 0; i < count; ++i)
      made.objects.push_back({objects_->keys[i],
                              {.id = object_id{i + 1}, .payload_bytes = bytes},
                              memory_.data() + i * (object_header_bytes + bytes)});
    return made;
  }
  static std::vector<move_outcome> all(move_outcome what) { return std::vector(count, what); }
  auto read(read_limit by) {
    read_request what{moved()};
    what.read_by = by;
    return ask<move_answer>(what);
  }

  std::vector<std::byte> memory_;
  batch_ptr objects_ = objects(count, bytes);
};

TEST_F(LateReads, WhatComesInTimeIsDelivered) {
  auto told = read(std::chrono::steady_clock::now() + std::chrono::hours(1));
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::done));
}

TEST_F(LateReads, AfterItsTimeNothingIsAskedFor) {
  const size_t before = server_.served["GET"];
  auto told = read(std::chrono::steady_clock::now());
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::late));
  EXPECT_EQ(server_.served["GET"], before);
}

TEST_F(LateReads, AreAnsweredAtTheirTimeAndTheRestIsNotAskedFor) {
  server_.hold("GET");
  const size_t before = server_.served["GET"];
  auto told = read(std::chrono::steady_clock::now() + std::chrono::milliseconds(2));
  const size_t asked = server_.served["GET"] - before;
  EXPECT_LT(asked, count);
  while (!*told) { // the store looks at the clock of this machine
    advance(std::chrono::milliseconds(1));
    go_on();
  }
  EXPECT_EQ((*told)->outcomes, all(move_outcome::late));
  server_.release(); // what is on its way comes
  go_on();
  EXPECT_EQ(server_.served["GET"] - before, asked);
  auto again = read(read_limit::max());
  ASSERT_TRUE(*again);
  EXPECT_EQ((*again)->outcomes, all(move_outcome::done));
}

} // namespace late_reads_test
} // namespace terrace::actors
