// The cost of small pieces on a GPU: by its copy engines, by the kernel across the bus, and by the kernel
// between their places and a buffer on the GPU that is copied as a whole. Also the cost of driver calls.
// Reports nothing without a GPU.
#include "bench/gpu_setup.hpp"
#include "client/engine_device.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cuda/stream.hpp"

#include <fcntl.h>

#include <iostream>

namespace terrace::bench {

namespace {

/// `bytes` in pieces, sixteen per run. They lie one after the other in host memory, and the pieces of a run
/// lie far apart on the GPU.
struct pieces_of_size {
  static constexpr uint64_t of_run = 16;
  uint64_t piece, runs;
  std::vector<uint64_t> places;

  pieces_of_size(uint64_t bytes, uint64_t piece_bytes)
      : piece(piece_bytes), runs(bytes / piece_bytes / of_run) {
    places.resize(runs);
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), std::mt19937(5));
  }
  uint64_t stride() const { return runs * piece; }
  /// Returns a part of a request.
  gpu::copy_part part(uint64_t first, uint64_t count) const {
    gpu::copy_part made;
    for (uint64_t i = first; i < first + count; ++i)
      made.copies.push_back({.region_offset = places[i] * piece,
                             .object_offset = i * of_run * piece,
                             .bytes = piece,
                             .region_stride = stride(),
                             .object_stride = piece,
                             .count = of_run});
    return made;
  }
  /// Returns the same pieces for the kernel.
  std::vector<client::device_run> device_runs(uint64_t base, uint64_t first, uint64_t count) const {
    std::vector<client::device_run> made;
    for (uint64_t i = first; i < first + count; ++i)
      made.push_back(
          {.address = base + places[i] * piece, .bytes = piece, .stride = stride(), .count = of_run});
    return made;
  }
};

/// K and V of a token in a layer of an 8B-class model.
constexpr uint64_t token_bytes = 2 * half_token_bytes;
constexpr uint64_t pieces_bytes = 256ULL << 20, pieces_parts = 32;

uint64_t address_of(const std::shared_ptr<gpu::memory>& memory) {
  return dynamic_cast<const gpu::cuda_memory&>(*memory).address();
}

/// Copies through a buffer, as an engine with small blocks does (client/engine_device.hpp).
class buffered_pieces {
 public:
  explicit buffered_pieces(gpu_setup& on)
      : on_(on), page_memory_(must(client::region::create("generations", 4096), "making a page")),
        gpu_(
            must(client::engine_device::open({.device = on.uuid, .kernel = {}}), "opening the engine's GPU")),
        buffer_(must(on.device->allocate(pieces_bytes), "allocating a buffer")),
        context_(
            must(cuda::context::retain(must(cuda::driver::open(), "opening the driver"), 0), "a context")),
        work_(must(cuda::stream::make(context_), "making a stream")) {
    must(gpu_->attach(page_memory_), "attaching a page");
    page_ = must(
        on.device->attach(std::make_shared<const gpu::generation_page>(must(
            gpu::generation_page::open(unique_fd(::fcntl(page_memory_.descriptor(), F_DUPFD_CLOEXEC, 0))),
            "opening a page"))),
        "attaching a page");
  }

  /// Returns seconds.
  double load(gpu::copy_stream& stream, const pieces_of_size& pieces) {
    ++generation_;
    return seconds_of([&] {
      gpu::copy_request request{on_.next_id++, buffer_, on_.arena, page_, {}, {}};
      for (uint64_t i = 0; i < pieces_parts; ++i)
        request.parts.push_back(whole_part(i, gpu::generation{static_cast<uint32_t>(i), generation_}));
      must(stream.submit(std::move(request)), "submitting a copy");
      for (uint64_t i = 0; i < pieces_parts; ++i) {
        must(gpu_->wait(work_.get(), counter(i)), "waiting");
        must(gpu_->scatter(work_.get(), runs_of(pieces, i), address_of(buffer_) + i * part_bytes),
             "scattering");
      }
      end(stream);
      must(work_.synchronize(), "scattering");
    });
  }
  double store(gpu::copy_stream& stream, const pieces_of_size& pieces) {
    ++generation_;
    return seconds_of([&] {
      for (uint64_t i = 0; i < pieces_parts; ++i) {
        must(gpu_->gather(work_.get(), runs_of(pieces, i), address_of(buffer_) + i * part_bytes),
             "gathering");
        must(gpu_->write(work_.get(), counter(i)), "writing");
      }
      for (uint64_t i = 0; i < pieces_parts; ++i) {
        gpu::copy_request request{on_.next_id++,
                                  buffer_,
                                  on_.arena,
                                  page_,
                                  gpu::generation{static_cast<uint32_t>(i), generation_},
                                  {}};
        request.parts.push_back(whole_part(i, {}));
        must(stream.submit(std::move(request)), "submitting a copy");
      }
      end(stream);
    });
  }

 private:
  static constexpr uint64_t part_bytes = pieces_bytes / pieces_parts;

  static gpu::copy_part whole_part(uint64_t i, std::optional<gpu::generation> signal) {
    gpu::copy_part part;
    part.copies.push_back({i * part_bytes, i * part_bytes, part_bytes, 0, 0, 1});
    part.signal = signal;
    return part;
  }
  client::layer_counter counter(uint64_t i) const { return {i * sizeof(uint32_t), generation_}; }
  std::vector<client::device_run> runs_of(const pieces_of_size& pieces, uint64_t part) const {
    auto count = pieces.runs / pieces_parts;
    return pieces.device_runs(address_of(on_.region), part * count, count);
  }
  static void end(gpu::copy_stream& stream) {
    transfer(stream, std::vector<gpu::copy_request>{}, [] {});
  }

  gpu_setup& on_;
  client::region page_memory_;
  std::unique_ptr<client::engine_device> gpu_;
  std::shared_ptr<gpu::memory> buffer_;
  std::shared_ptr<const cuda::context> context_;
  cuda::stream work_;
  std::shared_ptr<gpu::attached_page> page_;
  uint32_t generation_ = 0;
};

double by_engine(gpu_setup& on, gpu::copy_stream& stream, const pieces_of_size& pieces) {
  auto request = on.request();
  auto count = pieces.runs / pieces_parts;
  for (uint64_t i = 0; i < pieces_parts; ++i)
    request.parts.push_back(pieces.part(i * count, count));
  return transfer(stream, std::move(request));
}

double at_once(gpu_setup& on, gpu::copy_stream& stream) {
  auto request = on.request();
  for (uint64_t i = 0; i < pieces_parts; ++i) {
    gpu::copy_part part;
    part.copies.push_back({i * (pieces_bytes / pieces_parts), i * (pieces_bytes / pieces_parts),
                           pieces_bytes / pieces_parts, 0, 0, 1});
    request.parts.push_back(std::move(part));
  }
  return transfer(stream, std::move(request));
}

} // namespace

void gpu_pieces(const settings& options, const reporter& report) {
  if (!cuda::driver::open()) {
    std::cerr << "gpu_pieces needs a GPU" << std::endl;
    return;
  }
  auto rate = [](double seconds) { return static_cast<double>(pieces_bytes) / 1e9 / seconds; };
  for (auto way : {gpu::direction::load, gpu::direction::store}) {
    const std::string name = way == gpu::direction::load ? "gpu_pieces_load_" : "gpu_pieces_store_";
    gpu_setup setups[] = {gpu_setup(false, {.method = gpu::copy_method::batch}),
                          gpu_setup(false, {.method = gpu::copy_method::planes}),
                          gpu_setup(false, {.method = gpu::copy_method::kernel})};
    static constexpr const char* methods[] = {"batch", "planes", "kernel"};
    std::vector<std::unique_ptr<gpu::copy_stream>> streams;
    for (auto& each : setups)
      streams.push_back(must(gpu::copy_stream::open(each.device, way), "opening a stream"));
    buffered_pieces buffered(setups[0]);
    for (uint64_t piece = 1 << 10; piece <= 64 << 10; piece *= 2) {
      pieces_of_size pieces(pieces_bytes, piece);
      auto measure = [&] {
        std::vector<double> rates;
        for (size_t i = 0; i < streams.size(); ++i)
          rates.push_back(rate(by_engine(setups[i], *streams[i], pieces)));
        rates.push_back(rate(way == gpu::direction::load ? buffered.load(*streams[0], pieces)
                                                         : buffered.store(*streams[0], pieces)));
        return rates;
      };
      measure();
      auto sides = interleave(options.rounds, measure,
                              [&] { return std::vector{rate(at_once(setups[0], *streams[0]))}; });
      for (size_t i = 0; i < sides.values.size(); ++i)
        report(
            of_rounds({.name = name + std::to_string(piece >> 10) + "KiB_" + (i < 3 ? methods[i] : "buffer"),
                       .unit = "GB/s",
                       .floor = 0.5,
                       .aim = 0.8,
                       .direction = better::higher,
                       .bounded = i == 3 && piece == token_bytes},
                      sides.values[i], sides.limits[0]));
    }
  }
}

void gpu_calls(const settings& options, const reporter& report) {
  auto driver = cuda::driver::open();
  if (!driver) {
    std::cerr << "gpu_calls needs a GPU" << std::endl;
    return;
  }
  auto context = must(cuda::context::retain(*driver, 0), "opening the GPU");
  const auto& api = context->api();
  auto stream = must(cuda::stream::make(context), "making a stream");
  auto memory = must(cuda::allocation::make(context, 1 << 20), "allocating");
  auto pages = host_pages(1 << 20);
  auto pinned = must(cuda::registration::make(context, pages->bytes()), "pinning");
  auto event = must(cuda::event::make(context), "making an event");
  auto other = must(cuda::stream::make(context), "making a stream");
  auto to = memory.get().address, from = pinned.address();
  auto copy = [&] {
    return context->call("cuMemcpyAsync", api.MemcpyAsync, to, from, size_t{64}, stream.get());
  };
  auto batch = [&](size_t members) {
    std::vector<cuda::device_pointer> destinations, sources;
    std::vector<size_t> bytes(members, 64);
    for (size_t i = 0; i < members; ++i) {
      destinations.push_back(to + i * 64);
      sources.push_back(from + i * 64);
    }
    cuda::copy_attributes attributes;
    size_t begin = 0;
    return context->call("cuMemcpyBatchAsync", api.MemcpyBatchAsync, destinations.data(), sources.data(),
                         bytes.data(), bytes.size(), &attributes, &begin, size_t{1}, stream.get());
  };
  auto host_function = [&] {
    return context->call(
        "cuLaunchHostFunc", api.LaunchHostFunc, stream.get(), +[](void*) {}, static_cast<void*>(nullptr));
  };
  auto write = [&] {
    return context->call("cuStreamWriteValue32", api.StreamWriteValue32, stream.get(), from + 8192, 1u,
                         cuda::write_value_default);
  };
  struct call {
    const char* name;
    std::function<result<void>()> work;
  };
  const call calls[] = {{"copy", copy},
                        {"batch_of_1", [&] { return batch(1); }},
                        {"batch_of_64", [&] { return batch(64); }},
                        {"write_value", write},
                        {"host_function", host_function},
                        {"record", [&] { return event.record(stream); }},
                        {"copy_write",
                         [&]() -> result<void> {
                           auto ok = copy();
                           return ok ? write() : ok;
                         }},
                        {"copy_function",
                         [&]() -> result<void> {
                           auto ok = copy();
                           return ok ? host_function() : ok;
                         }},
                        {"write_function",
                         [&]() -> result<void> {
                           auto ok = write();
                           return ok ? host_function() : ok;
                         }},
                        {"copy_record",
                         [&]() -> result<void> {
                           auto ok = copy();
                           return ok ? event.record(stream) : ok;
                         }},
                        {"copy_record_write",
                         [&]() -> result<void> { // the value and the function use a stream of their own
                           for (auto ok : {copy(), event.record(stream), event.block(other)})
                             if (!ok)
                               return ok;
                           return context->call("cuStreamWriteValue32", api.StreamWriteValue32, other.get(),
                                                from + 8192, 1u, cuda::write_value_default);
                         }},
                        {"eight_copies_write_function",
                         [&]() -> result<void> {
                           for (int i = 0; i < 8; ++i)
                             if (auto ok = copy(); !ok)
                               return ok;
                           if (auto ok = write(); !ok)
                             return ok;
                           return host_function();
                         }},
                        {"copy_write_function", [&]() -> result<void> {
                           if (auto ok = copy(); !ok)
                             return ok;
                           if (auto ok = write(); !ok)
                             return ok;
                           return host_function();
                         }}};
  constexpr int count = 500;
  for (const call& each : calls) {
    if (std::string_view(each.name).starts_with("batch") && !api.MemcpyBatchAsync)
      continue;
    std::vector<double> processor, wall, called;
    for (int round = 0; round <= options.rounds; ++round) {
      double cpu = host_seconds(CLOCK_PROCESS_CPUTIME_ID), begin = seconds_now();
      for (int i = 0; i < count; ++i)
        must(each.work(), each.name);
      double issued = seconds_now();
      must(stream.synchronize(), each.name);
      if (round == 0)
        continue;
      processor.push_back((host_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / count * 1e6);
      called.push_back((issued - begin) / count * 1e6);
      wall.push_back((seconds_now() - begin) / count * 1e6);
    }
    for (auto& [what, samples] : {std::pair("_cpu", processor), {"_call", called}, {"_wall", wall}})
      report(of_rounds({.name = std::string("gpu_call_") + each.name + what, .unit = "us", .bounded = false},
                       samples));
  }
}

} // namespace terrace::bench
