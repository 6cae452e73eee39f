#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace heddle::host::cudnn {

// Answers a question about the graph of an attention (host/device/cudnn/attention_questions.h). The
// answer is the name of the fastest proposal, or "" if cuDNN proposes only one way or none.
// - If `given`, the answer of the user, is not "" and cuDNN accepts it, the function returns it.
// - If the folder of compiled kernels has an answer for this GPU model and version of cuDNN, the
//   function returns it.
// - Otherwise it measures the proposals on `stream` (host/device/timed_choice.h), and stores the
//   answer.
//
// `stream` may be nullptr; the function then uses a temporary stream. `device` is the ordinal of
// the GPU. The first call of a process for a question runs the chosen plan, so that CUDA loads its
// kernels.
//
// Memory:  the operands have random values. If there is not enough memory for all operands and the
//          largest workspace, the function returns "" and stores nothing.
// Capture: while a CUDA graph is being captured from the stream, the function does not measure. It
//          returns the stored answer or "".
// Errors:  throws UserError if a call of CUDA fails, or if cuDNN cannot compute the graph.
// Threads: thread-safe. The handle of cuDNN is locked while the function measures.
std::string choosePlan(const std::string& question, int device, cudaStream_t stream,
                       const std::string& given);

}  // namespace heddle::host::cudnn
