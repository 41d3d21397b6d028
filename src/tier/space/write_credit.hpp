// Permission to add to the data waiting for the disk.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace terrace {

/// Credits are returned to it. The last copy of a credit may end on any thread, so any thread may call this;
/// it neither blocks nor throws. After the end of the issuer it has no effect.
class credit_sink {
 public:
  virtual ~credit_sink() = default;
  virtual void give_back(uint64_t bytes) = 0;
};
using credit_sink_ptr = std::shared_ptr<credit_sink>;

/// Permission to add this many bytes to the data waiting for the disk. Returned when the last copy ends, on
/// any thread.
class write_credit {
 public:
  write_credit(credit_sink_ptr from, uint64_t bytes) : from_(std::move(from)), bytes_(bytes) {}
  write_credit(const write_credit&) = delete;
  write_credit& operator=(const write_credit&) = delete;
  ~write_credit() { from_->give_back(bytes_); }

 private:
  credit_sink_ptr from_;
  uint64_t bytes_;
};
using credit_ptr = std::shared_ptr<const write_credit>;

/// (delayed: until this much credit is available, or the context ends)
struct write_credit_request {
  uint64_t bytes = 0;
  context_ptr context;
};
struct write_credit_answer {
  error failure;
  credit_ptr credit;
};

} // namespace terrace
