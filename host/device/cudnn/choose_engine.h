#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace heddle::host::cudnn {

// Answers a question about the graph of an attention (host/device/cudnn/attention_questions.h). The
// answer is an engine configuration of cuDNN (Graph::proposals()), or "" if cuDNN can build none.
// - If `given`, the answer of the user, is not "" and cuDNN can build it, the function returns it.
// - If the folder of compiled kernels has an answer for this GPU model and version of cuDNN, the
//   function returns it.
// - Otherwise the function measures the proposals on `stream` (host/device/timed_choice.h), and
//   stores the fastest one.
//
// `stream` may be nullptr; the function then uses a temporary stream. `device` is the ordinal of
// the GPU. The first call of a process for an answer runs its graph once, so that CUDA loads its
// kernels.
//
// Memory:  the function allocates all operands and the largest workspace, and frees them. If there
//          is not enough memory, it measures, runs and stores nothing, and returns the first
//          configuration.
// Capture: while a CUDA graph is being captured from the stream, the function neither measures nor
//          asks cuDNN. It returns `given`, or else the stored answer, or "".
// Errors:  throws UserError if a call of CUDA fails.
// Threads: thread-safe. The handle of cuDNN is locked while the function measures.
std::string chooseEngine(const std::string& question, int device, cudaStream_t stream,
                         const std::string& given);

}  // namespace heddle::host::cudnn
