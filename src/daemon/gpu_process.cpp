#include "daemon/serve.hpp"

#include "actors/gpu/child/gpu_child_actor.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cufile/owners.hpp"
#include "gpu/process/device_child.hpp"
#include "runtime/workers.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <fcntl.h>
#include <poll.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

namespace terrace {

namespace {

/// One for the daemon's messages, one for loads, one for stores.
constexpr uint32_t gpu_workers = 3;

} // namespace

int run_gpu_process(const std::string& device) {
  // The daemon handles signals and finishes its transfers first; this process ends with its socket.
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
    std::signal(number, SIG_IGN);
  if (::fcntl(gpu::process_socket, F_SETFD, FD_CLOEXEC) != 0) {
    std::cerr << "terraced --gpu is started by the daemon, with a socket at descriptor "
              << gpu::process_socket << "; register a region of the device instead\n";
    return 2;
  }
  runtime::runtime_options with;
  with.workers = gpu_workers;
  caf::actor_system_config config;
  runtime::workers::install(config, with);
  caf::actor_system system{config};
  runtime::workers workers{system};
  if (auto started = workers.wait_started(); !started) {
    std::cerr << "terraced --gpu: " << started.error().text << '\n';
    std::_Exit(1);
  }
  actors::spawn_link(system, {.socket = unique_fd(gpu::process_socket),
                              .device = device,
                              .messages = workers.at(0),
                              .loads = workers.at(1),
                              .stores = workers.at(2)});
  // The daemon's end is noticed even while a driver call hangs.
  pollfd daemon{gpu::process_socket, POLLRDHUP, 0};
  while (::poll(&daemon, 1, -1) <= 0) {
  }
  std::_Exit(0);
}

std::string gpu_report() {
  return cuda::report(cuda::driver::open()) + cufile::report(cufile::library::open());
}

} // namespace terrace
