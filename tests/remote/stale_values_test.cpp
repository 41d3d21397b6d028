// Which values in a store a clear has left behind.
#include "remote/realm.hpp"
#include "remote/stale_values.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

using standing = stale_values::standing;

realm realm_with(char key) {
  std::string bytes(32, key);
  return *realm::make("x/", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

realm_space space_with(const realm& of, uint8_t byte) {
  space_fingerprint fingerprint{};
  fingerprint[0] = byte;
  return of.space_of(fingerprint);
}

std::string value(const realm& of, const realm_space& space, uint64_t epoch, uint32_t part = 0) {
  return of.key_of({.space = space, .epoch = epoch}, part);
}

/// A realm with one space and their tokens.
struct written {
  explicit written(char key) : names(realm_with(key)), space(space_with(names, 1)) {}
  void tell(stale_values& to, uint64_t of_space, uint64_t of_all) const {
    for (const auto& [name, token] :
         {std::pair{names.epoch_key_of(space), of_space}, std::pair{names.epoch_key_of_all(), of_all}}) {
      to.see(name);
      to.token_is(name, epoch_text(token));
    }
  }
  realm names;
  realm_space space;
};

TEST(StaleValues, AreThoseWithAnEpochThatWasReplaced) {
  written ours('k');
  stale_values found("x/");
  ours.tell(found, 17, 4);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(17, 4))), standing::current);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(17, 4), 3)), standing::current);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(16, 4))), standing::stale);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(17, 8), 1)), standing::stale);
  found.forget_tokens();
  ours.tell(found, 16, 4);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(17, 4))), standing::stale);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(16, 4))), standing::current);
}

TEST(StaleValues, EqualTokensCombineToo) {
  written ours('k');
  stale_values found("x/");
  ours.tell(found, 17, 17);
  EXPECT_EQ(found.of(value(ours.names, ours.space, combined_epoch(17, 17))), standing::current);
}

TEST(StaleValues, OtherRealmsKeepTheirs) {
  written ours('k'), others('o');
  stale_values found("x/");
  ours.tell(found, 17, 4);
  others.tell(found, 32, 64);
  EXPECT_EQ(found.of(value(others.names, others.space, combined_epoch(32, 64))), standing::current);
  EXPECT_EQ(found.of(value(others.names, others.space, combined_epoch(33, 64))), standing::stale);
}

TEST(StaleValues, WithoutATokenNothingIsKnown) {
  written ours('k');
  stale_values found("x/");
  EXPECT_EQ(found.of(value(ours.names, ours.space, 5)), standing::no_token);
  auto name = ours.names.epoch_key_of(ours.space);
  found.see(name);
  for (std::optional<std::string_view> text : {std::optional<std::string_view>{}, {"no token"}, {""}}) {
    found.token_is(name, text);
    EXPECT_EQ(found.of(value(ours.names, ours.space, 5)), standing::no_token);
  }
  EXPECT_EQ(found.tokens(), std::vector<std::string>{name});
}

TEST(StaleValues, OtherKeysAreNobodysValues) {
  written ours('k');
  stale_values found("x/");
  ours.tell(found, 17, 4);
  const std::string whole = value(ours.names, ours.space, 99);
  for (const std::string& key :
       {std::string("x/"), std::string("x/t1/"), "y" + whole, whole.substr(0, 40), whole.substr(0, 54),
        std::string("x/t1/epoch/zz"), "x/t1/" + std::string(32, 'G') + "/0000000000000063/0.0/aa",
        ours.names.epoch_key_of(ours.space), ours.names.epoch_key_of(ours.space) + "/more"}) {
    found.see(key);
    EXPECT_EQ(found.of(key), standing::other) << key;
  }
  EXPECT_EQ(found.tokens().size(), 2U);
}

} // namespace
} // namespace terrace::remote
