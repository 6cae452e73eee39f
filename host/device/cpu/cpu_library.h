#pragma once

#include "host/device/cpu/tile_pool.h"
#include "host/device/library_call.h"

namespace heddle::host {

// The library functions on the CPU, parallel over blocks of neighbouring lines; the result does not
// depend on the number of threads.

// What a pool of `threads` needs as LibraryCall::workspace.
int64_t cpuLibraryWorkspace(const LibraryCall& call, int threads);
// On the calling thread together with the pool. Allocates nothing. The result has elements.
void cpuLibrary(const LibraryCall& call, TilePool& pool);

}  // namespace heddle::host
