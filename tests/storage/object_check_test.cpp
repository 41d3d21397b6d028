#include "storage/object_check.hpp"

#include "simulated_device.hpp"
#include "tests/support/stored_objects.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

constexpr uint32_t piece_bytes = 256 << 10;

class ObjectCheck : public ::testing::Test {
 protected:
  checked_object check(const index_record& object) {
    return object_checker(device_, store_.block(), piece_bytes)
        .check(object, test::fingerprint_of(object.space));
  }
  uint64_t place(const index_record& object) { return store_.block().layout.extents_begin + object.offset; }

  simulated_device device_{0};
  test::volume_builder store_{device_, 4 << 20};
};

TEST_F(ObjectCheck, IntactObjectsOfAllSizesPass) {
  for (uint32_t bytes : {0u, 1u, 4096u, 4097u, piece_bytes - 4096, piece_bytes, piece_bytes + 5}) {
    index_record object = store_.add(1, bytes, bytes);
    checked_object found = check(object);
    EXPECT_EQ(found.state, stored_state::intact) << bytes << ": " << found.why;
    EXPECT_EQ(found.bytes_read, object.physical_bytes);
  }
}

TEST_F(ObjectCheck, FindsAFlippedBitInHeaderOrPayload) {
  index_record object = store_.add(1, 1, 600'000);
  for (uint64_t byte : {uint64_t{100}, uint64_t{4096}, uint64_t{4096 + 599'999}}) {
    device_.flip_bit(8 * (place(object) + byte));
    EXPECT_EQ(check(object).state, stored_state::damaged) << byte;
    EXPECT_NE(check(object).why, "");
    device_.flip_bit(8 * (place(object) + byte));
  }
  device_.flip_bit(8 * (place(object) + 4096 + 600'000));
  EXPECT_EQ(check(object).state, stored_state::intact) << "padding has no meaning";
}

TEST_F(ObjectCheck, TellsAReusedExtentFromADamagedOne) {
  index_record object = store_.add(1, 1, 5000);
  store_.add(1, 2, 5000, object.offset);
  checked_object found = check(object);
  EXPECT_EQ(found.state, stored_state::superseded);
  EXPECT_NE(found.why.find("another object"), std::string::npos) << found.why;
}

TEST_F(ObjectCheck, TellsAnExtentThatANewerObjectWasWrittenOverFromADamagedOne) {
  index_record before = store_.add(1, 1, 400'000);
  index_record object = store_.add(1, 2, 400'000);
  uint64_t end = object.offset + object.physical_bytes;
  // Written inside the object: its header is intact, its payload is not.
  store_.add(1, 3, 300'000, object.offset + 40960);
  EXPECT_EQ(check(object).state, stored_state::superseded) << check(object).why;
  store_.add(1, 4, 900'000, before.offset + 4096); // written from before the object: its header is gone
  EXPECT_EQ(check(object).state, stored_state::superseded) << check(object).why;
  EXPECT_EQ(check(before).state, stored_state::superseded) << check(before).why;
  index_record behind = store_.add(1, 5, 5000, end + (1 << 20));
  store_.add(1, 6, 5000, end); // between them, without reaching into either
  device_.flip_bit(8 * place(behind) + 3);
  EXPECT_EQ(check(behind).state, stored_state::damaged);
}

TEST_F(ObjectCheck, AnOlderHeaderInsideOrBeforeADamagedObjectProvesNothing) {
  index_record before = store_.add(1, 1, 400'000);
  index_record inside = store_.add(1, 2, 5000, before.offset + 81920);
  index_record object = store_.add(1, 3, 300'000, before.offset + 40960);
  test::write_object(device_, store_.block(), inside); // as if a part of the object had never arrived
  EXPECT_EQ(check(object).state, stored_state::damaged);
  device_.flip_bit(8 * place(object) + 3);
  EXPECT_EQ(check(object).state, stored_state::damaged);
}

TEST_F(ObjectCheck, ReportsWhatCannotBeRead) {
  index_record object = store_.add(1, 1, 50'000);
  device_.make_unreadable(place(object) + 8192);
  EXPECT_EQ(check(object).state, stored_state::unreadable);
  EXPECT_EQ(check(object).why, "Input/output error");
}

TEST_F(ObjectCheck, ComparesTheLengthWithTheIndex) {
  index_record object = store_.add(1, 1, 5000);
  object.payload_bytes = 4999;
  EXPECT_EQ(check(object).state, stored_state::damaged);
}

TEST_F(ObjectCheck, FindsThatAnExtentWasNeverWritten) {
  index_record object = store_.add(1, 1, 5000);
  object.offset += 1 << 20;
  EXPECT_EQ(check(object).state, stored_state::damaged);
}

} // namespace
} // namespace terrace
