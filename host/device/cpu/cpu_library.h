#pragma once

#include "host/device/cpu/tile_pool.h"
#include "host/device/library_call.h"

namespace heddle::host {

// The library functions (host/device/library_call.h) on the CPU. Several threads compute different
// lines of a call in parallel (a line consists of the elements along the axis of the call). The
// result does not depend on the number of threads.

// Returns the number of bytes that LibraryCall::workspace needs for a pool of `threads` threads.
// Throws UserError if an f8 type would be summed or sorted, or if lineSpaceOf() finds too many
// axes.
int64_t cpuLibraryWorkspace(const LibraryCall& call, int threads);
// Computes the call on the calling thread and the pool, and returns when the result is complete.
// Only TilePool::run() may allocate memory in this call. The result must have at least one element.
void cpuLibrary(const LibraryCall& call, TilePool& pool);

}  // namespace heddle::host
