#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::comm::fake {

// Runs `work` on a stream of fake_cuda.cpp, as a kernel would.
void launch(cudaStream_t stream, std::function<void()> work);

// The process of the calling thread, as getpid() returns it; 0: the real one. Other processes can
// open memory of this one only by IPC handles.
void setProcess(int process);

// Counters of the fakes, over all threads.
struct Counts {
  int64_t blocks = 0;      // of device memory that are there
  int64_t opened = 0;      // handles
  int64_t freed_open = 0;  // blocks that were freed while somebody had them open
  int64_t aborts = 0;      // of NCCL communicators
  int64_t bad_aborts = 0;  // of one that was gone
  int64_t nccl = 0;        // communicators that are there
};
Counts counts();

// Faults of the calling thread from now on (-1: none): its GPU can access this many other GPUs; the
// copy after this many copies fails.
void failAccessAfter(int peers);
void failCopyAfter(int copies);

// Disables all copies from now on: released streams would copy invalid data at the same time, which
// would be a data race.
void setVoid(bool is_void);
bool isVoid();

// For fake_nccl.cpp.
void count(const std::function<void(Counts&)>& change);

}  // namespace heddle::comm::fake
