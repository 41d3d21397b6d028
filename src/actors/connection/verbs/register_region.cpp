// register_region: client memory that the daemon may copy from and into, of the host or of a device.
#include "actors/connection/verbs.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>

namespace terrace::actors::verbs {

namespace {

struct registration {
  std::shared_ptr<unique_fd> memory;
  uint64_t bytes = 0;
  device_memory_ptr page; ///< the same memory, as a device has it; null: none has
  bool again = false;     ///< regions that were being unmapped have given their bytes back
};

void add_region(connection& client, const connection::request& what, client_region_ptr region) {
  bool mapped = region->mapped();
  auto on_device = region->device();
  auto page = region->page();
  auto id = client.holdings().add(std::move(region));
  client.show();
  if (!client.ok(what, id))
    return;
  if (page)
    page->give_events();
  if (on_device)
    client.watch_device_memory(on_device);
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRegisterRegionAnswer(body, static_cast<uint32_t>(*id), mapped);
  });
}

void try_registration(connection& client, const connection::request& what, registration asked) {
  if (!what.context->live()) {
    client.refuse(what, {what.context->ended.load(), "the request ended before the region was mapped"});
    return;
  }
  auto charge = client.regions()->take(asked.bytes);
  if (!charge && charge.error().code == errc::busy && !asked.again) {
    asked.again = true;
    client.resume_after_teardown(what, [&client, what, asked] { try_registration(client, what, asked); });
    return;
  }
  if (!client.ok(what, charge))
    return;
  auto region = client_region::open(
      std::move(*asked.memory), asked.bytes,
      {std::move(*charge), client.environment().teardown, client.environment().populator, asked.page});
  if (client.ok(what, region))
    add_region(client, what, std::move(*region));
}

/// It is mapped by the process of the device, so it is charged for as long as it is registered.
void on_imported(connection& client, const connection::request& what, uint64_t bytes,
                 const import_region_answer& imported) {
  if (!client.ok(what, imported.failure))
    return;
  auto charge = client.regions()->take(bytes);
  if (client.ok(what, charge))
    add_region(client, what,
               client_region::of_device(imported.memory, bytes, {std::move(*charge), nullptr, {}, {}}));
}

/// A page of generations is mapped twice: by the device's process, and here as any memfd.
void on_page_imported(connection& client, const connection::request& what, const registration& asked,
                      const import_region_answer& imported) {
  if (!client.ok(what, imported.failure))
    return;
  registration with_page = asked;
  with_page.page = imported.memory;
  try_registration(client, what, with_page);
}

void register_of_device(connection& client, const connection::request& what,
                        const wire::RegisterRegion& asked, std::shared_ptr<unique_fd> memory) {
  import_region_request wanted;
  wanted.bytes = asked.bytes();
  wanted.context = what.context;
  wanted.page = asked.kind() == wire::RegionKind::generations;
  wanted.events = asked.events();
  registration here{memory, asked.bytes(), {}, false};
  if (wanted.page) {
    wanted.descriptor = std::make_shared<unique_fd>(::fcntl(memory->get(), F_DUPFD_CLOEXEC, 0));
    if (!*wanted.descriptor) {
      client.refuse(what, {errc::busy, "the daemon has no descriptors left"});
      return;
    }
  } else if (asked.kind() == wire::RegionKind::cuda_ipc) // a vector of this size: bounds.cpp
    std::transform(asked.handle()->begin(), asked.handle()->end(), wanted.handle.begin(),
                   [](uint8_t byte) { return static_cast<std::byte>(byte); });
  else
    wanted.descriptor = std::move(memory);
  client.ask(what, client.environment().devices, open_device_request{asked.device()->str()},
             "the actor of the devices has ended",
             [&client, what, wanted = std::move(wanted), here](const open_device_answer& opened) {
               if (!client.ok(what, opened.failure))
                 return;
               client.ask(what, opened.device, wanted, "the device's actor has ended",
                          [&client, what, here, page = wanted.page](const import_region_answer& imported) {
                            if (page)
                              on_page_imported(client, what, here, imported);
                            else
                              on_imported(client, what, here.bytes, imported);
                          });
             });
}

} // namespace

void register_region(connection& client, const connection::request& what, const wire::RegisterRegion& asked,
                     protocol::descriptor_list& descriptors) {
  std::shared_ptr<unique_fd> memory(new unique_fd(std::move(descriptors[0])),
                                    deleted_by{client.environment().teardown});
  if (asked.kind() == wire::RegionKind::memfd)
    try_registration(client, what, {std::move(memory), asked.bytes(), {}, false});
  else if (!client.environment().devices)
    client.refuse(what, {errc::unsupported, "this daemon serves no devices; register a memfd"});
  else
    register_of_device(client, what, asked, std::move(memory));
}

} // namespace terrace::actors::verbs
