// A check of what a client has.
#include "actors/connection/connection.hpp"
#include "runtime/answer.hpp"

namespace terrace::actors {

caf::result<check_client_answer> connection::on_check() {
  check_client_answer made;
  if (client_.holdings().leases() > check_client_request::leases_max) {
    made.left_out = true;
    return made;
  }
  made.leases = client_.holdings().kept_leases();
  made.readings = client_.holdings().readings();
  if (owner_ended_) // it keeps what its client may be reading, and nothing else
    return made;
  made.differences = client_.holdings().check();
  for (std::string& one : inbox_.requests().check())
    made.differences.push_back(std::move(one));
  for (std::string& one : made.differences)
    one = "connection " + std::to_string(static_cast<uint64_t>(client_.record()->id)) + ": " + one;
  auto reply = make_answer<check_client_answer>(self_);
  auto compared = std::make_shared<check_client_answer>(std::move(made));
  // The group has read all earlier notices of this connection when it reads this.
  ask(
      client_.group().group, check_owner_request{client_.record()->id, client_.holdings().owned()},
      [reply, compared](const check_answer_texts& answer) mutable {
        compared->differences.insert(compared->differences.end(), answer.differences.begin(),
                                     answer.differences.end());
        reply.deliver(std::move(*compared));
      },
      [reply, compared]() mutable { reply.deliver(std::move(*compared)); });
  return reply.promise();
}

} // namespace terrace::actors
