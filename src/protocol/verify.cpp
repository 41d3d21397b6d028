#include "protocol/verify.hpp"

#include "protocol/limits.hpp"

#include <string>

namespace terrace::protocol {

namespace {

constexpr flatbuffers::uoffset_t depth_max = 8; // StatusAnswer > GroupStatus > TierStatus is 3

template <class T>
result<const T*> parse_as(std::span<const uint8_t> body, size_t tables_max, const char* name) {
  if (body.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || body.size() > frame_bytes_max)
    return fail(errc::bad_request, std::string("the body of ") + name + " is longer than a frame may be");
  flatbuffers::Verifier verifier(body.data(), body.size(), depth_max,
                                 static_cast<flatbuffers::uoffset_t>(tables_max));
  if (!verifier.VerifyBuffer<T>(nullptr))
    return fail(errc::bad_request, std::string("expected a well-formed FlatBuffer with the root ") + name +
                                       " and all its required fields, got " + std::to_string(body.size()) +
                                       " bytes that are none");
  const T* table = flatbuffers::GetRoot<T>(body.data());
  if (auto ok = check(*table); !ok)
    return tl::unexpected<error>(error{ok.error().code, std::string(name) + ": " + ok.error().text});
  return table;
}

} // namespace

// Every request stands here once, with its answer.
#define TERRACE_PARSE(TABLE, TABLES_MAX)                                                                     \
  template <>                                                                                                \
  result<const wire::TABLE*> parse<wire::TABLE>(std::span<const uint8_t> body) {                             \
    return parse_as<wire::TABLE>(body, TABLES_MAX, #TABLE);                                                  \
  }
#define TERRACE_PARSE_VERB(VERB)                                                                             \
  TERRACE_PARSE(VERB, request_tables_max) TERRACE_PARSE(VERB##Answer, answer_tables_max)

TERRACE_PARSE_VERB(Hello)
TERRACE_PARSE_VERB(OpenSpace)
TERRACE_PARSE_VERB(RegisterRegion)
TERRACE_PARSE_VERB(UnregisterRegion)
TERRACE_PARSE_VERB(MapSegment)
TERRACE_PARSE_VERB(Lookup)
TERRACE_PARSE_VERB(ReadLease)
TERRACE_PARSE_VERB(Load)
TERRACE_PARSE_VERB(Store)
TERRACE_PARSE_VERB(Reserve)
TERRACE_PARSE_VERB(Commit)
TERRACE_PARSE_VERB(Abort)
TERRACE_PARSE_VERB(Release)
TERRACE_PARSE_VERB(Cancel)
TERRACE_PARSE_VERB(Status)
TERRACE_PARSE_VERB(EndInference)
TERRACE_PARSE_VERB(Clear)
TERRACE_PARSE_VERB(AwaitLookup)
TERRACE_PARSE_VERB(Policies)
TERRACE_PARSE_VERB(SetPolicy)
TERRACE_PARSE(Error, 1)

#undef TERRACE_PARSE_VERB
#undef TERRACE_PARSE

} // namespace terrace::protocol
