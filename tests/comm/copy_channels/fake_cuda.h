#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::comm::fake {

// Runs `work` on a stream of fake_cuda.cpp, as a kernel would.
void launch(cudaStream_t stream, std::function<void()> work);

// The calling thread's process, as getpid() tells it: 0 is the real one. Others reach memory of
// this one by CUDA's handles alone.
void setProcess(int process);

// What the fakes have met, of all threads.
struct Counts {
  int64_t blocks = 0;      // of device memory that are there
  int64_t opened = 0;      // handles
  int64_t freed_open = 0;  // blocks that were freed while somebody had them open
  int64_t aborts = 0;      // of NCCL communicators
  int64_t bad_aborts = 0;  // of one that was gone
  int64_t nccl = 0;        // communicators that are there
};
Counts counts();

// What goes wrong from here on, in the calling thread (-1: nothing): its GPU reaches so many others
// and then no more; the copy after so many others fails.
void failAccessAfter(int peers);
void failCopyAfter(int copies);

// Nothing is moved from here on, as what is given up is moved by several at once.
void setVoid(bool is_void);
bool isVoid();

// For fake_nccl.cpp.
void count(const std::function<void(Counts&)>& change);

}  // namespace heddle::comm::fake
