// What an operator's eviction removes from a remote store.
#include "played_store.hpp"

namespace terrace::actors {
namespace remote_removal_test {

class RemoteRemoval : public played_store_test::PlayedStore {};

TEST_F(RemoteRemoval, IsAnsweredWhenTheStoreHasRemovedTheValues) {
  auto all = objects(3);
  store_has(all);
  server_.hold("UNLINK");
  auto removed = remove(all);
  EXPECT_FALSE(*removed);
  server_.release();
  go_on();
  ASSERT_TRUE(*removed);
  EXPECT_EQ((*removed)->failure.code, errc::ok) << (*removed)->failure.text;
  EXPECT_EQ(objects_in_store(), 0U);
}

TEST_F(RemoteRemoval, LearnsTheTokensOfASpaceThatNobodyHasUsed) {
  auto all = objects(2);
  store_has(all);
  server_.hold("GET");
  auto removed = remove(all);
  EXPECT_EQ(server_.served["UNLINK"], 0U);
  server_.release();
  go_on();
  ASSERT_TRUE(*removed);
  EXPECT_EQ((*removed)->failure.code, errc::ok) << (*removed)->failure.text;
  EXPECT_EQ(objects_in_store(), 0U);
}

TEST_F(RemoteRemoval, WhatTheBookKnewIsAskedAgain) {
  auto all = objects(1);
  store_has(all);
  EXPECT_EQ(questions_of(all), 1U);
  EXPECT_EQ(questions_of(all), 0U) << "the book knows that it is there";
  EXPECT_TRUE(*remove(all));
  EXPECT_EQ(questions_of(all), 1U);
  store_has(all);
  EXPECT_TRUE(*remove(all));
  store_has(all); // again, by another machine
  EXPECT_EQ(questions_of(all), 1U);
  EXPECT_EQ(questions_of(all), 0U) << "what is stored later is believed";
}

TEST_F(RemoteRemoval, AnAnswerFromBeforeItIsNotBelieved) {
  auto all = objects(1);
  store_has(all);
  server_.hold("EXISTS");
  auto found = find(all);
  EXPECT_EQ(server_.served["EXISTS"], 1U);
  EXPECT_TRUE(*remove(all));
  EXPECT_EQ(objects_in_store(), 0U);
  EXPECT_FALSE(*found);
  server_.release();
  go_on();
  EXPECT_TRUE(*found);
  EXPECT_EQ(questions_of(all), 1U) << "the store had it when it answered the first lookup";
}

TEST_F(RemoteRemoval, WhatIsAboutToBeWrittenIsNot) {
  auto all = objects(1);
  std::vector<std::byte> memory(object_header_bytes + payload);
  write_request written;
  written.space = space_;
  written.objects.push_back({all->keys[0], {.id = object_id{1}, .payload_bytes = payload}, memory.data()});
  server_.hold("EXISTS");
  auto moved = ask<move_answer>(written);
  EXPECT_EQ(server_.served["EXISTS"], 1U) << "the store may have it already";
  EXPECT_TRUE(*remove(all));
  server_.release();
  go_on();
  ASSERT_TRUE(*moved);
  EXPECT_EQ((*moved)->outcomes, std::vector{move_outcome::failed});
  EXPECT_EQ(objects_in_store(), 0U);
  written.space = space_;
  EXPECT_EQ((*ask<move_answer>(written))->outcomes, std::vector{move_outcome::done}) << "a later store";
  EXPECT_EQ(objects_in_store(), 1U);
}

TEST_F(RemoteRemoval, WhatIsBeingWrittenIsRemovedBehindIt) {
  auto all = objects(1);
  std::vector<std::byte> memory(object_header_bytes + payload);
  write_request written;
  written.space = space_;
  written.objects.push_back({all->keys[0], {.id = object_id{1}, .payload_bytes = payload}, memory.data()});
  server_.hold("SET");
  auto moved = ask<move_answer>(written);
  EXPECT_FALSE(*moved);
  auto removed = remove(all);
  EXPECT_FALSE(*removed);
  server_.release();
  go_on();
  EXPECT_TRUE(*removed);
  EXPECT_EQ(objects_in_store(), 0U);
  EXPECT_EQ(questions_of(all), 1U) << "the book does not believe that it was written";
}

TEST_F(RemoteRemoval, AllPartsOfAnObjectLeave) {
  auto all = objects(2, 2 * remote::part_bytes + 1);
  store_has(all);
  for (const object_key& each : all->keys)
    for (uint32_t part = 1; part < 3; ++part)
      store_has({remote::realm::key_of_part(key_of(each), part), "bytes"});
  EXPECT_TRUE(*remove(all));
  EXPECT_EQ(server_.served["UNLINK"], 6U);
  EXPECT_EQ(objects_in_store(), 0U);
}

TEST_F(RemoteRemoval, WhatNobodyRefersToLeavesTheStore) {
  auto all = objects(1);
  store_has(all);
  EXPECT_TRUE(*find(all));
  index_change change;
  change.space = space_->id;
  change.unwanted = true;
  change.record.kind = record_kind::remove;
  change.record.chunk = all->keys[0].chunk;
  change.record.payload_bytes = payload;
  caf::anon_send(store_, index_changes{{change}});
  go_on();
  EXPECT_EQ(objects_in_store(), 0U);
}

TEST_F(RemoteRemoval, TellsThatTheStoreRefuses) {
  auto all = objects(2);
  store_has(all);
  server_.refuse("UNLINK");
  auto removed = remove(all);
  ASSERT_TRUE(*removed);
  EXPECT_EQ((*removed)->failure.code, errc::denied);
  EXPECT_NE((*removed)->failure.text.find("this user may not"), std::string::npos)
      << (*removed)->failure.text;
  server_.refuse("UNLINK", "ERR"); // for a reason that the daemon does not know
  auto again = remove(all);
  ASSERT_TRUE(*again);
  EXPECT_EQ((*again)->failure.code, errc::busy) << (*again)->failure.text;
}

TEST_F(RemoteRemoval, AStoreThatRefusesATokenIsNotAskedAgainAtOnce) {
  server_.refuse("GET", "ERR");
  const size_t before = server_.served["GET"];
  auto removed = remove(objects(1));
  ASSERT_TRUE(*removed);
  EXPECT_EQ((*removed)->failure.code, errc::busy) << (*removed)->failure.text;
  EXPECT_EQ(server_.served["GET"] - before, 1U);
}

TEST_F(RemoteRemoval, TellsThatTheStoreIsAway) {
  auto all = objects(2);
  EXPECT_TRUE(*find(all));
  server_.hold("UNLINK");
  auto during = remove(all);
  EXPECT_FALSE(*during);
  server_.close();
  go_on();
  advance(remote_store::before_another_try);
  go_on();
  ASSERT_TRUE(*during);
  EXPECT_EQ((*during)->failure.code, errc::busy);
  auto behind = remove(all);
  ASSERT_TRUE(*behind);
  EXPECT_EQ((*behind)->failure.code, errc::busy);
  EXPECT_NE((*behind)->failure.text.find("may still have"), std::string::npos) << (*behind)->failure.text;
}

} // namespace remote_removal_test
} // namespace terrace::actors
