// Memory for coroutine frames, which have a few sizes that recur.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace terrace {

/// Free frames of this thread by size, at most `kept_max` of each size. A frame may be freed on another
/// thread than the one that allocated it, because floating actors move.
class frame_pool {
 public:
  static constexpr size_t step_bytes = 128;
  static constexpr size_t largest_bytes = 4096; ///< larger ones are not kept
  static constexpr size_t kept_max = 64;

  frame_pool() = default;
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;
  ~frame_pool() {
    for (auto& frames : lists_)
      while (frames.first != nullptr)
        ::operator delete(frames.pop());
  }

  static void* take(size_t bytes) {
    size_t n = number(bytes);
    if (n < lists && !closed && of_thread().lists_[n].first != nullptr)
      return of_thread().lists_[n].pop();
    return ::operator new(n < lists ? (n + 1) * step_bytes : bytes);
  }

  static void give_back(void* frame, size_t bytes) noexcept {
    size_t n = number(bytes);
    if (n < lists && !closed && of_thread().lists_[n].count < kept_max)
      of_thread().lists_[n].push(frame);
    else
      ::operator delete(frame);
  }

 private:
  static constexpr size_t lists = largest_bytes / step_bytes;

  struct node {
    node* next = nullptr;
  };
  struct list {
    node* first = nullptr;
    size_t count = 0;
    void push(void* at) {
      first = new (at) node{first};
      ++count;
    }
    void* pop() {
      node* taken = first;
      first = taken->next;
      --count;
      return taken;
    }
  };

  static size_t number(size_t bytes) { return (bytes - 1) / step_bytes; }
  static frame_pool& of_thread() {
    struct closing : frame_pool {
      ~closing() { closed = true; }
    };
    static thread_local closing pool;
    return pool;
  }

  static inline thread_local bool closed = false; ///< the thread is ending, and the pool has been destroyed

  std::array<list, lists> lists_{};
};

/// Allocator of objects that belong to a frame and outlive it.
template <class T>
struct frame_allocator {
  using value_type = T;
  frame_allocator() = default;
  template <class U>
  frame_allocator(const frame_allocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(frame_pool::take(count * sizeof(T))); }
  void deallocate(T* at, size_t count) noexcept { frame_pool::give_back(at, count * sizeof(T)); }
  friend bool operator==(const frame_allocator&, const frame_allocator&) { return true; }
};

} // namespace terrace
