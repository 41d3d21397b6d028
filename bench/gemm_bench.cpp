// How much loads into GPU memory slow down the engine's own work: matrix products of bf16 in the engine's
// process, alone and while the daemon loads. Needs a GPU and cuBLAS, which is looked up at run time.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/workload.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <thread>

namespace terrace::bench {

namespace {

constexpr int gemm_size = 8192;
constexpr uint64_t gemm_matrix_bytes = uint64_t{gemm_size} * gemm_size * 2;
constexpr int gemms_per_round = 200;
constexpr uint64_t gemm_object_bytes = 4ULL << 20;
constexpr size_t gemm_objects = 256; // 1 GiB

template <class T>
result<T> without(const std::string& what) {
  return fail(errc::unsupported, what);
}

/// cuBLAS, declared as its manual describes the interface, so that the build needs no header of it.
class cublas {
 public:
  static result<std::unique_ptr<cublas>> open() {
    void* library = nullptr;
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
      if (library == nullptr)
        library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); // the library stays open
    if (library == nullptr)
      return without<std::unique_ptr<cublas>>("there is no cuBLAS");
    std::unique_ptr<cublas> made(new cublas);
    made->create_ = reinterpret_cast<create_function>(::dlsym(library, "cublasCreate_v2"));
    made->set_stream_ = reinterpret_cast<set_stream_function>(::dlsym(library, "cublasSetStream_v2"));
    made->gemm_ = reinterpret_cast<gemm_function>(::dlsym(library, "cublasGemmEx"));
    if (made->create_ == nullptr || made->set_stream_ == nullptr || made->gemm_ == nullptr)
      return without<std::unique_ptr<cublas>>("cuBLAS lacks a function");
    return made;
  }

  /// The GPU's context must be current, here and in all functions below.
  bool use(cuda::stream_handle stream) { return create_(&handle_) == 0 && set_stream_(handle_, stream) == 0; }
  /// Computes c = a * b; all are square.
  bool multiply(cuda::device_pointer a, cuda::device_pointer b, cuda::device_pointer c) {
    constexpr int no_transposition = 0, bf16 = 14, accumulated_in_32_bits = 68, default_algorithm = -1;
    const float one = 1, zero = 0;
    auto at = [](cuda::device_pointer address) { return reinterpret_cast<void*>(address); };
    return gemm_(handle_, no_transposition, no_transposition, gemm_size, gemm_size, gemm_size, &one, at(a),
                 bf16, gemm_size, at(b), bf16, gemm_size, &zero, at(c), bf16, gemm_size,
                 accumulated_in_32_bits, default_algorithm) == 0;
  }

 private:
  using create_function = int (*)(void** handle);
  using set_stream_function = int (*)(void* handle, cuda::stream_handle stream);
  using gemm_function = int (*)(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                                const void* alpha, const void* a, int type_a, int lda, const void* b,
                                int type_b, int ldb, const void* beta, void* c, int type_c, int ldc,
                                int compute_type, int algorithm);
  create_function create_ = nullptr;
  set_stream_function set_stream_ = nullptr;
  gemm_function gemm_ = nullptr;
  void* handle_ = nullptr;
};

/// The engine's work.
class gemm_engine {
 public:
  explicit gemm_engine(std::shared_ptr<const cuda::context> context, std::unique_ptr<cublas> blas)
      : context_(std::move(context)), blas_(std::move(blas)),
        stream_(must(cuda::stream::make(context_), "making a stream")) {
    for (auto& matrix : matrices_)
      matrix = must(cuda::allocation::make(context_, gemm_matrix_bytes), "allocating a matrix");
    auto pages = must(client::region::create("terrace-bench", gemm_matrix_bytes), "making a matrix");
    std::mt19937 random(7);
    for (uint64_t i = 0; i < gemm_matrix_bytes; i += 2) { // of magnitude 0.008 to 2, with both signs
      auto value = static_cast<uint16_t>((random() & 0x8000) | (0x3c00 + (random() & 0x3ff)));
      std::memcpy(pages.data() + i, &value, sizeof value);
    }
    auto pinned = must(cuda::registration::make(context_, std::as_writable_bytes(pages.bytes())), "pinning");
    for (const auto& matrix : matrices_)
      must(context_->call("cuMemcpyAsync", context_->api().MemcpyAsync, matrix.get().address,
                          pinned.address(), size_t{gemm_matrix_bytes}, stream_.get()),
           "copying a matrix");
    must(stream_.synchronize(), "copying matrices");
    in_context([this] {
      if (!blas_->use(stream_.get()))
        give_up("cuBLAS does not begin");
    });
  }

  /// Returns products per second.
  double rate() {
    double seconds = seconds_of([this] {
      in_context([this] {
        for (int i = 0; i < gemms_per_round; ++i)
          if (!blas_->multiply(matrices_[0].get().address, matrices_[1].get().address,
                               matrices_[2].get().address))
            give_up("a product failed");
      });
      must(stream_.synchronize(), "multiplying");
    });
    return gemms_per_round / seconds;
  }

 private:
  void in_context(const std::function<void()>& work) {
    context_->raw(
        +[](const std::function<void()>* call) {
          (*call)();
          return cuda::status::success;
        },
        &work);
  }

  std::shared_ptr<const cuda::context> context_;
  std::unique_ptr<cublas> blas_;
  cuda::stream stream_;
  cuda::allocation matrices_[3];
};

/// Loads 1 GiB into the GPU again and again, from its construction to its end, on a thread of its own.
class gemm_loads {
 public:
  gemm_loads(client::connection& by, const client::load_request& what)
      : thread_([this, &by, &what] {
          while (!ends_) {
            must(by.load(what), "loading");
            ++loads_;
            loads_.notify_one();
          }
        }) {
    loads_.wait(0);
  }
  ~gemm_loads() {
    ends_ = true;
    thread_.join();
  }
  uint32_t loads() const { return loads_; }

 private:
  std::atomic<bool> ends_ = false;
  std::atomic<uint32_t> loads_ = 0;
  std::thread thread_;
};

/// Returns the GPU's context if everything that is needed is there.
result<std::shared_ptr<const cuda::context>> context_of(std::string& uuid) {
  auto driver = cuda::driver::open();
  if (!driver)
    return tl::unexpected(driver.error());
  auto devices = (*driver)->devices();
  if (!devices)
    return tl::unexpected(devices.error());
  uuid = cuda::to_text(devices->front().uuid);
  return cuda::context::retain(*driver, devices->front().ordinal);
}

} // namespace

void gemm_disturbance(const settings& options, const reporter& report) {
  std::string uuid;
  auto context = context_of(uuid);
  auto blas = cublas::open();
  if (!context || !blas) {
    std::cerr << "gemm_disturbance did not run: " << (context ? blas.error() : context.error()).text
              << std::endl;
    return;
  }
  bench_daemon daemon(options, {.host_bytes = 3ULL << 30, .disk = false});
  auto memory =
      must(cuda::allocation::make(*context, gemm_objects * gemm_object_bytes), "allocating a region");
  auto handle = must(memory.share(), "sharing a region");
  client::device_allocation shared{.device = uuid, .bytes = gemm_objects * gemm_object_bytes};
  std::memcpy(shared.handle.data(), &handle, shared.handle.size());
  auto by = connect(daemon.socket());
  auto space = must(by.open_space(space_of(gemm_object_bytes)), "opening a space");
  auto region = must(by.register_device_region(shared), "registering a region");
  auto chain = digests_of(gemm_objects, 14);
  std::vector<client::run> runs;
  for (uint64_t i = 0; i < gemm_objects; ++i)
    runs.push_back({.offset = i * gemm_object_bytes, .bytes = gemm_object_bytes});
  auto prefix = client::prefix::of_digests(chain);
  must(by.store({.in = space, .what = prefix, .region = &region, .runs = runs}), "storing");
  client::load_request load{.in = space, .what = prefix, .region = &region, .runs = runs};

  gemm_engine engine(*context, std::move(*blas));
  engine.rate();
  std::vector<double> alone, beside, loaded;
  for (int i = 0; i < options.rounds; ++i) {
    alone.push_back(engine.rate());
    gemm_loads loads(by, load);
    uint32_t before = loads.loads();
    double seconds = seconds_of([&] { beside.push_back(engine.rate()); });
    loaded.push_back((loads.loads() - before) * 1.073741824 / seconds);
  }
  report(of_rounds({.name = "gemm_disturbance",
                    .unit = "products/s",
                    .floor = 0.9,
                    .aim = 0.97,
                    .direction = better::higher},
                   beside, alone));
  report(of_rounds(
      {.name = "gemm_disturbance_loaded", .unit = "GB/s", .direction = better::higher, .bounded = false},
      loaded));
}

} // namespace terrace::bench
