#pragma once

#include "host/device/cpu/tile_pool.h"
#include "host/device/library_call.h"

namespace heddle::host {

// The library functions (host/device/library_call.h) on the CPU. Threads work on different blocks
// of neighbouring lines in parallel. The result does not depend on the number of threads.

// Returns the bytes of LibraryCall::workspace for a pool of `threads`. UserError if an f8 type
// would be summed or sorted.
int64_t cpuLibraryWorkspace(const LibraryCall& call, int threads);
// Computes the call on the calling thread and the pool, and returns when it is done. Allocates
// nothing. The result must have at least one element.
void cpuLibrary(const LibraryCall& call, TilePool& pool);

}  // namespace heddle::host
