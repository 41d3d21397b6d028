#include "gpu/cufile/cuda_disk_reader.hpp"

#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/cufile/owners.hpp"
#include "gpu/kernels/kernel_image.hpp"
#include "gpu/kernels/payload_sums.hpp"
#include "gpu/worker_threads.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>

namespace terrace::gpu {

namespace {

constexpr uint64_t block_bytes = 4096;
static_assert(object_header_bytes == block_bytes && disk_reader::extents_max == sum_batch::payloads_max &&
              disk_reader::payload_bytes_min == payload_sum_bytes_min);

/// The number of reads in progress. Each reads one object, and a single small one does not keep a disk busy.
constexpr size_t threads_max = 8;

struct sums_module_kind {
  using type = cuda::module_handle;
  static cuda::status release(const cuda::functions& api, type module) { return api.ModuleUnload(module); }
};

struct sums_kernel {
  cuda::owned<sums_module_kind> module;
  cuda::function_handle function = nullptr;
};

/// The part of a batch that comes to host memory: the header blocks, and the sums of the payloads.
struct read_page {
  struct layout {
    std::array<std::array<std::byte, object_header_bytes>, disk_reader::extents_max> headers;
    std::array<uint64_t, disk_reader::extents_max> sums;
  };
  struct release {
    void operator()(layout* page) const { std::free(page); }
  };
  static constexpr size_t bytes = (sizeof(layout) + block_bytes - 1) / block_bytes * block_bytes;

  std::unique_ptr<layout, release> page;
  cuda::registration pinned;

  cuda::device_pointer header(size_t i) const { return pinned.address() + i * object_header_bytes; }
  cuda::device_pointer sums() const { return pinned.address() + offsetof(layout, sums); }
};

struct slot {
  cuda::stream stream;
  read_page page;
};

struct batch {
  uint64_t slot = 0;
  std::vector<disk_extent> extents;
  std::function<void(read_batch)> done;
  std::atomic<size_t> left{0};
  std::mutex mutex; ///< protects the three members below
  uint64_t read = 0, unread = 0;
  std::string why;

  void note(size_t extent, const result<void>& how) {
    std::lock_guard lock(mutex);
    if (how)
      read |= uint64_t{1} << extent;
    else if (how.error().code == errc::internal)
      unread |= uint64_t{1} << extent;
    if (!how && why.empty())
      why = how.error().text;
  }
};

class cuda_disk_reader : public disk_reader {
 public:
  cuda_disk_reader(std::shared_ptr<const cufile::session> session, cufile::buffer buffer, sums_kernel kernel,
                   std::vector<slot> made, std::unique_ptr<worker_threads> opener,
                   std::unique_ptr<worker_threads> threads)
      : session_(std::move(session)), begin_(buffer.range().address), kernel_(std::move(kernel)),
        slots_(std::move(made)), opener_(std::move(opener)), threads_(std::move(threads)) {
    auto range = buffer.range();
    staging_ = std::make_shared<cuda_memory>(&session_->context(), std::move(buffer), range, false);
  }

  const std::shared_ptr<memory>& staging() const override { return staging_; }

  void add_file(uint64_t number, unique_fd descriptor, std::function<void(result<void>)> done) override {
    auto shared = std::make_shared<unique_fd>(std::move(descriptor));
    opener_->add([this, number, shared, done = std::move(done)] {
      auto opened = cufile::file::open(session_, std::move(*shared));
      if (!opened) {
        done(tl::unexpected(opened.error()));
        return;
      }
      {
        std::lock_guard lock(mutex_);
        files_[number] = std::make_shared<const cufile::file>(std::move(*opened));
      }
      done({});
    });
  }

  void read(uint64_t in, std::vector<disk_extent> extents, std::function<void(read_batch)> done) override {
    auto work = std::make_shared<batch>();
    work->slot = in;
    work->extents = std::move(extents);
    work->done = std::move(done);
    work->left = work->extents.size();
    if (!is_legal(*work)) {
      threads_->add([work] { work->done({{errc::bad_request, "a read beside its slot"}, 0, 0, {}}); });
      return;
    }
    for (size_t i = 0; i < work->extents.size(); ++i)
      threads_->add([this, work, i] {
        work->note(i, read_extent(*work, i));
        if (--work->left == 0) // the last thread has seen what the others have read
          work->done(verified(*work));
      });
  }

 private:
  bool is_legal(const batch& work) const {
    if (work.slot >= slots || work.extents.empty() || work.extents.size() > extents_max)
      return false;
    return std::all_of(work.extents.begin(), work.extents.end(), [this](const disk_extent& each) {
      return (each.file_offset | each.bytes | each.at) % block_bytes == 0 && each.bytes <= slot_bytes() &&
             each.at <= slot_bytes() - each.bytes && each.expected.payload_bytes >= payload_bytes_min &&
             each.bytes > object_header_bytes &&
             each.expected.payload_bytes <= each.bytes - object_header_bytes;
    });
  }

  uint64_t begin_of(const batch& work, size_t extent) const {
    return work.slot * slot_bytes() + work.extents[extent].at;
  }

  result<void> read_extent(const batch& work, size_t i) {
    const disk_extent& extent = work.extents[i];
    std::shared_ptr<const cufile::file> file;
    {
      std::lock_guard lock(mutex_);
      if (auto found = files_.find(extent.file); found != files_.end())
        file = found->second;
    }
    if (!file)
      return fail(errc::bad_request, "a read of a file that is not open");
    return file->read(begin_, begin_of(work, i), extent.bytes, extent.file_offset);
  }

  /// Copies the headers, and the sums of the payloads that were read, into the slot's page.
  result<void> look(const batch& work) {
    const slot& here = slots_[work.slot];
    const auto& context = session_->context();
    sum_batch sums;
    sums.sums = here.page.sums();
    result<void> started;
    for (size_t i = 0; started && i < work.extents.size(); ++i) {
      if ((work.read >> i & 1) == 0)
        continue;
      const auto at = begin_ + begin_of(work, i);
      started = context.call("cuMemcpyAsync", context.api().MemcpyAsync, here.page.header(i), at,
                             size_t{object_header_bytes}, here.stream.get());
      sums.payload[sums.payloads++] = {at + object_header_bytes, work.extents[i].expected.payload_bytes};
    }
    if (sums.payloads == 0)
      return {};
    void* parameters[] = {&sums};
    if (started)
      started = context.call("cuLaunchKernel", context.api().LaunchKernel, kernel_.function, sums.payloads,
                             1u, 1u, sum_thread::count, 1u, 1u, 0u, here.stream.get(), &parameters[0],
                             static_cast<void**>(nullptr));
    // Waits after a failure, too, so that nothing uses the page any more.
    auto ended = here.stream.synchronize();
    return started ? ended : started;
  }

  read_batch verified(batch& work) {
    read_batch answer;
    if (auto looked = look(work); !looked) {
      answer.failure = looked.error();
      return answer;
    }
    const auto& page = *slots_[work.slot].page.page;
    size_t sum = 0;
    for (size_t i = 0; i < work.extents.size(); ++i) {
      if ((work.read >> i & 1) == 0)
        continue;
      if (is_expected(page.headers[i], work.extents[i].expected, page.sums[sum++]))
        answer.good |= uint64_t{1} << i;
      else if (work.why.empty())
        work.why = "an object's header or checksum is not the expected one";
    }
    answer.unread = work.unread;
    answer.why = std::move(work.why);
    return answer;
  }

  std::shared_ptr<const cufile::session> session_;
  cuda::device_pointer begin_; ///< start of the slots
  sums_kernel kernel_;
  std::vector<slot> slots_;
  std::shared_ptr<memory> staging_; ///< copies keep it, too
  std::mutex mutex_;                ///< protects the files
  std::map<uint64_t, std::shared_ptr<const cufile::file>> files_;
  std::unique_ptr<worker_threads> opener_;  ///< opens files, which may take long: reads go on
  std::unique_ptr<worker_threads> threads_; ///< both are destroyed first
};

result<sums_kernel> load_kernel(const std::shared_ptr<const cuda::context>& context) {
  auto image = sums_image();
  if (image.empty())
    return fail(errc::unsupported, "built without NVIDIA's toolkit, so nothing is verified on the device");
  const auto& api = context->api();
  const void* code = image.data();
  cuda::module_handle module = nullptr;
  if (auto ok = context->call("cuModuleLoadData", api.ModuleLoadData, &module, code); !ok)
    return tl::unexpected(ok.error());
  sums_kernel made{cuda::owned<sums_module_kind>(context, module), nullptr};
  if (auto ok = context->call("cuModuleGetFunction", api.ModuleGetFunction, &made.function, module,
                              sums_kernel_name);
      !ok)
    return tl::unexpected(ok.error());
  return made;
}

result<slot> make_slot(const std::shared_ptr<const cuda::context>& context) {
  auto stream = cuda::stream::make(context);
  if (!stream)
    return tl::unexpected(stream.error());
  slot made{std::move(*stream), {}};
  auto& page = made.page;
  page.page.reset(static_cast<read_page::layout*>(std::aligned_alloc(block_bytes, read_page::bytes)));
  if (!page.page)
    return fail(errc::no_space, "no memory for the headers of objects");
  auto pinned = cuda::registration::make(
      context, std::span(reinterpret_cast<std::byte*>(page.page.get()), read_page::bytes));
  if (!pinned)
    return tl::unexpected(pinned.error());
  page.pinned = std::move(*pinned);
  return made;
}

} // namespace

result<std::shared_ptr<disk_reader>> make_cuda_disk_reader(std::shared_ptr<const cuda::context> context,
                                                           uint64_t bytes) {
  assert(bytes % (disk_reader::slots * block_bytes) == 0);
  auto kernel = load_kernel(context);
  if (!kernel)
    return tl::unexpected(kernel.error());
  auto library = cufile::library::open();
  if (!library)
    return tl::unexpected(library.error());
  auto session = cufile::session::open(std::move(*library), context);
  if (!session)
    return tl::unexpected(session.error());
  auto memory = cuda::allocation::make(context, bytes);
  if (!memory)
    return tl::unexpected(memory.error());
  auto buffer = cufile::buffer::make(*session, std::move(*memory));
  if (!buffer)
    return tl::unexpected(buffer.error());
  std::vector<slot> slots;
  for (uint64_t i = 0; i < disk_reader::slots; ++i) {
    auto made = make_slot(context);
    if (!made)
      return tl::unexpected(made.error());
    slots.push_back(std::move(*made));
  }
  auto opener = worker_threads::make(1);
  if (!opener)
    return tl::unexpected(opener.error());
  auto threads = worker_threads::make(threads_max);
  if (!threads)
    return tl::unexpected(threads.error());
  return std::make_shared<cuda_disk_reader>(std::move(*session), std::move(*buffer), std::move(*kernel),
                                            std::move(slots), std::move(*opener), std::move(*threads));
}

} // namespace terrace::gpu
