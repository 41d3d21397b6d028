#include "transfer/copy_queue.hpp"

#include "transfer/copy_ops.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

class copy_queue::copying final : public job {
 public:
  copying(copy_request request, uint64_t piece_bytes, std::function<void(copy_answer)> answer)
      : copy_(std::move(request), piece_bytes), answer_(std::move(answer)) {}

  uint64_t next_cost() const override { return std::min(copy_.left(), slice_cost); }
  bool go_on(uint64_t budget) override { return copy_.go_on(budget); }
  void finish() override { answer_(copy_.take_answer()); }

 private:
  byte_copy copy_;
  std::function<void(copy_answer)> answer_;
};

/// Sealing or checking, object by object.
template <class Request, class Answer>
class copy_queue::object_work final : public job {
 public:
  object_work(Request request, std::function<void(Answer)> answer)
      : what_(std::move(request)), answer_(std::move(answer)) {}

  uint64_t next_cost() const override {
    uint64_t cost = 0;
    for (size_t i = next_; i < what_.objects.size() && cost < slice_cost; ++i)
      cost += cost_of(what_.objects[i]);
    return cost;
  }

  bool go_on(uint64_t budget) override {
    for (uint64_t spent = 0; next_ < what_.objects.size() && spent < budget; ++next_) {
      const sealed_object& object = what_.objects[next_];
      if constexpr (std::is_same_v<Request, seal_request>)
        seal_object(what_, object);
      else
        done_.good.push_back(check_object(what_, object));
      spent += cost_of(object);
    }
    return next_ == what_.objects.size();
  }

  void finish() override { answer_(std::move(done_)); }

 private:
  /// A header takes about a microsecond.
  static uint64_t cost_of(const sealed_object& object) { return object.payload_bytes + (16 << 10); }

  Request what_;
  Answer done_;
  std::function<void(Answer)> answer_;
  size_t next_ = 0;
};

void copy_queue::push(const context_ptr& context, std::unique_ptr<job> what, bool later) {
  uint64_t cost = what->next_cost();
  later = later || (context && context->ahead);
  (later ? later_ : line_).push(flow_of(context), {flow_of(context), std::move(what)}, cost);
}

void copy_queue::add(copy_request request, std::function<void(copy_answer)> answer) {
  context_ptr context = request.context;
  push(context, std::make_unique<copying>(std::move(request), piece_bytes_, std::move(answer)));
}

void copy_queue::add(seal_request request, std::function<void(seal_answer)> answer) {
  context_ptr context = request.context;
  push(context,
       std::make_unique<object_work<seal_request, seal_answer>>(std::move(request), std::move(answer)), true);
}

void copy_queue::add(check_request request, std::function<void(check_answer)> answer) {
  context_ptr context = request.context;
  push(context,
       std::make_unique<object_work<check_request, check_answer>>(std::move(request), std::move(answer)));
}

void copy_queue::serve() {
  bool later = line_.empty() || passed_over_ == patience;
  passed_over_ = later || later_.empty() ? 0 : passed_over_ + 1;
  auto& line = later ? later_ : line_;
  entry next = line.pop();
  if (next.what->go_on(slice_cost)) {
    next.what->finish();
    return;
  }
  uint64_t cost = next.what->next_cost();
  line.push_front(next.owner, std::move(next), cost);
}

} // namespace terrace
