// bell: an eventfd that the client rings when it has written a counter which one of its requests waits for.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void bell(connection& client, const connection::request& what, const wire::Bell&,
          protocol::descriptor_list&) {
  auto descriptor = client.bell();
  if (!client.ok(what, descriptor))
    return;
  std::vector<unique_fd> descriptors;
  descriptors.push_back(std::move(*descriptor));
  client.reply(
      what, [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateBellAnswer(body); },
      std::move(descriptors));
}

} // namespace terrace::actors::verbs
