#include "memory/heap_trim.hpp"

#include <malloc.h>

namespace terrace {

namespace {
struct heap_trim {
  ~heap_trim() { ::malloc_trim(0); }
};
} // namespace

keep_alive trim_at_end(const teardown_ptr& by) {
  return std::shared_ptr<heap_trim>(new heap_trim, deleted_by{by});
}

} // namespace terrace
