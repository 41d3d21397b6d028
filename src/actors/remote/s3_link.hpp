// S3 LINK: the requests of the remote store to a bucket, by libcurl. libcurl says which sockets it waits for and until when; the ring of
// the worker waits, and libcurl is told. No thread of ours blocks; names of hosts are resolved by libcurl in threads of its own.
//
// A link has several HTTP connections, because one answers one request at a time: as many as requests are under way, fewer after the
// store has asked for that. The first request, a list, shows whether the store lets us in. Then a request that fails is refused, and
// the link fails only if others would as well: the bucket or the credentials are wrong, the store cannot be reached, says nothing at
// all, or fails several times in a row.
//
// libcurl copies: between its buffers and the memory that a command names, while it is called. So that memory is free once a link has ended.
#pragma once

#include "actors/remote/store_link.hpp"

#include <memory>

namespace terrace::actors {

/// Precondition: remote::knows_buckets().
std::unique_ptr<store_link> make_s3_link(store_link::callbacks call);

} // namespace terrace::actors
