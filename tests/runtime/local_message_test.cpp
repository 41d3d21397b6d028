// Messages whose content is a `local_value`, as CAF sees them.
#include "runtime/local_message.hpp"

#include <gtest/gtest.h>

#include <caf/all.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/binary_serializer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace local_message_test {

struct parcel {
  std::shared_ptr<int> inside;
};
struct letter {};

} // namespace local_message_test

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(local_message_test::parcel)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(local_message_test::letter)

template <class Base>
class caf::detail::tuple_vals_impl<Base, local_message_test::parcel>
    : public terrace::runtime::local_value<Base, local_message_test::parcel> {
 public:
  using super = message_data;
  using terrace::runtime::local_value<Base, local_message_test::parcel>::local_value;
};

namespace local_message_test {

TEST(LocalMessage, HasTheTypeOfItsValue) {
  const caf::message message = caf::make_message(parcel{});
  EXPECT_EQ(message.size(), 1u);
  EXPECT_EQ(message.type_token(), caf::make_type_token<parcel>());
  EXPECT_TRUE(message.match_elements<parcel>());
  EXPECT_FALSE(message.match_elements<letter>()) << "which CAF keeps in its own way";
  EXPECT_FALSE(message.match_elements<int>());
  EXPECT_FALSE((message.match_elements<parcel, int>()));
}

TEST(LocalMessage, IsMovedNotCopied) {
  auto content = std::make_shared<int>(7);
  caf::message message = caf::make_message(parcel{content});
  EXPECT_EQ(content.use_count(), 2) << "ours, and the message's";
  EXPECT_EQ(message.get_as<parcel>(0).inside, content);
  const parcel taken = message.move_if_unshared<parcel>(0);
  EXPECT_EQ(content.use_count(), 2) << "ours, and that which was taken";
}

TEST(LocalMessage, AChangeOfACopyDoesNotChangeTheOriginal) {
  caf::message original = caf::make_message(parcel{std::make_shared<int>(7)}), copy = original;
  copy.get_mutable_as<parcel>(0).inside = nullptr;
  ASSERT_TRUE(original.get_as<parcel>(0).inside);
  EXPECT_EQ(*original.get_as<parcel>(0).inside, 7);
}

TEST(LocalMessage, ReachesAnActorAndItsAnswerComesBack) {
  caf::actor_system_config config;
  caf::actor_system system(config);
  auto echo = system.spawn([]() -> caf::behavior {
    return {[](parcel& received) { return std::move(received); }, [](letter) { return 1; }};
  });
  caf::scoped_actor self(system);
  auto content = std::make_shared<int>(7);
  std::optional<parcel> answer;
  self->request(echo, caf::infinite, parcel{content})
      .receive([&](parcel& value) { answer = std::move(value); }, [](const caf::error&) { FAIL(); });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->inside, content);
  EXPECT_EQ(content.use_count(), 2) << "ours, and the answer's: nothing was copied on the way";
}

TEST(LocalMessage, IsNeitherPrintedNorSerialized) {
  caf::actor_system_config config;
  caf::actor_system system(config);
  caf::message message = caf::make_message(parcel{});
  EXPECT_EQ(message.stringify(0), "<unprintable>");
  std::vector<char> bytes;
  caf::binary_serializer out(system, bytes);
  EXPECT_TRUE(message.save(0, out)) << "an error";
  EXPECT_TRUE(bytes.empty());
  caf::binary_deserializer in(system, bytes);
  EXPECT_TRUE(message.vals().unshared().load(0, in)) << "an error";
}

} // namespace local_message_test
