#include "conformance/device_under_test.hpp"

#include <functional>
#include <map>

namespace terrace::gpu {

namespace {

/// Before each part, this device asks on the thread that copies the part whether it fails.
class asking_under_test : public device_under_test {
 public:
  using opener = result<std::shared_ptr<device>> (*)(host_device_options options);

  explicit asking_under_test(opener make) : make_(make) {}

  result<std::shared_ptr<device>> open() override {
    return make_({.fault = [this] { return fault(); }});
  }
  void hold() override {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() override {
    std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void fail_part(unsigned skip) override {
    std::lock_guard lock(mutex_);
    fails_after_ = skip;
  }
  void lose() override {
    std::lock_guard lock(mutex_);
    loses_ = true;
  }

 private:
  std::optional<error> fault() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !held_; });
    if (loses_)
      return error{errc::gone, "lost by the test"};
    if (!fails_after_)
      return {};
    if (*fails_after_ > 0) {
      --*fails_after_;
      return {};
    }
    fails_after_.reset();
    return error{errc::internal, "failed by the test"};
  }

  const opener make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool loses_ = false;
  std::optional<unsigned> fails_after_;
};

class cuda_under_test : public device_under_test {
 public:
  cuda_under_test(cuda_device_options options, const char* function, uint64_t seed)
      : options_(options), function_(function) {
    if (has_controls())
      sim_.reset(1, 256 << 20, seed);
  }
  ~cuda_under_test() override {
    if (has_controls())
      sim_.release();
  }

  result<std::shared_ptr<device>> open() override {
    auto driver = cuda::driver::open(cuda::driver_library());
    if (!driver)
      return tl::unexpected(driver.error());
    return make_cuda_device(*driver, (*driver)->devices().value().front().uuid, options_);
  }
  std::string absent() override {
    if (options_.method == copy_method::kernel && kernel_image().empty())
      return "built without NVIDIA's toolkit";
    return "";
  }
  bool has_controls() override { return !cuda::on_real_driver(); }
  void hold() override { sim_.hold_streams(); }
  void release() override {
    if (has_controls())
      sim_.release();
  }
  void fail_part(unsigned skip) override { sim_.fail(function_, cuda::status::invalid_value, skip, 1); }
  void lose() override { sim_.fail_execution(cuda::status::ecc_uncorrectable); }
  std::vector<std::string> broken_rules() override {
    return has_controls() ? sim_.broken_rules() : std::vector<std::string>();
  }
  size_t live() override { return has_controls() ? sim_.live() : 0; }

 private:
  cuda::simulation sim_;
  cuda_device_options options_;
  const char* function_; ///< called once for a part of one piece
};

using maker = std::function<std::unique_ptr<device_under_test>(uint64_t seed)>;

maker asking(asking_under_test::opener make) {
  return [make](uint64_t) { return std::make_unique<asking_under_test>(make); };
}

/// `function` is called once for a part of one piece.
maker on_cuda(cuda_device_options options, const char* function) {
  return [=](uint64_t seed) { return std::make_unique<cuda_under_test>(options, function, seed); };
}

/// Returns every device; other files ask for them before main.
const std::map<std::string, maker>& devices() {
  static const std::map<std::string, maker> all = {
      {"host", asking(&make_host_device)},
      {"cuda_batch", on_cuda({copy_method::batch, 0, false}, "cuMemcpyBatchAsync")},
      {"cuda_planes", on_cuda({copy_method::planes, 0, false}, "cuMemcpyAsync")},
      {"cuda_single", on_cuda({copy_method::single, 0, false}, "cuMemcpyAsync")},
      {"cuda_kernel", on_cuda({copy_method::kernel, 0, false}, "cuLaunchKernel")},
      {"cuda_virtual_memory", on_cuda({copy_method::automatic, 0, true}, "cuMemcpyBatchAsync")},
  };
  return all;
}

} // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : devices())
    names.push_back(name);
  return names;
}

std::unique_ptr<device_under_test> make_device_under_test(const std::string& name, uint64_t seed) {
  return devices().at(name)(seed);
}

} // namespace terrace::gpu
