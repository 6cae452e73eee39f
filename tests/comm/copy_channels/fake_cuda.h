#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::comm::fake {

// Runs `work` on a stream of fake_cuda.cpp, as a kernel would.
void launch(cudaStream_t stream, std::function<void()> work);

// Makes getpid() return a different process number for each `process`, on the calling thread only;
// 0: the real number. Threads with another number can open the memory of this thread only by IPC
// handles.
void setProcess(int process);

// Counters of the fake CUDA and the fake NCCL, over all threads.
struct Counts {
  int64_t blocks = 0;      // allocated blocks of device memory
  int64_t opened = 0;      // open IPC handles
  int64_t freed_open = 0;  // blocks that were freed while another thread had them open
  int64_t aborts = 0;      // aborts of NCCL communicators
  int64_t bad_aborts = 0;  // aborts and destructions of NCCL communicators that no longer existed
  int64_t nccl = 0;        // existing NCCL communicators
};
Counts counts();

// These functions inject faults into the calling thread; -1: no fault.
// - failAccessAfter(n): the GPU of the thread can access only n other GPUs.
// - failCopyAfter(n): the copy after the next n copies fails.
void failAccessAfter(int peers);
void failCopyAfter(int copies);

// setVoid(true) turns all copies off. Tests of aborts need this: an abort releases waiting streams,
// which would then copy at the same time. The thread sanitizer would report a data race.
void setVoid(bool is_void);
bool isVoid();

// Changes the counters. fake_nccl.cpp calls this function.
void count(const std::function<void(Counts&)>& change);

}  // namespace heddle::comm::fake
