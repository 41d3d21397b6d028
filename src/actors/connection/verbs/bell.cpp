// bell: an eventfd that the client rings when it has written a counter which one of its requests waits for.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> bell(client_request& request, const wire::Bell&, protocol::descriptor_list&) {
  auto descriptor = request.actor.bell();
  co_await request.valid(descriptor);
  std::vector<unique_fd> descriptors;
  descriptors.push_back(std::move(*descriptor));
  request.reply([](flatbuffers::FlatBufferBuilder& body) { return wire::CreateBellAnswer(body); },
                std::move(descriptors));
}

} // namespace terrace::actors::verbs
