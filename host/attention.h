#pragma once

#include <memory>
#include <string>

#include "host/device.h"
#include "host/executable.h"
#include "ir/segment.h"

namespace heddle::host {

// scaled_dot_product_attention as one call of a library: the forward of f16 and bf16 on CUDA, by
// cuDNN. In a fusion attention stays the ops it is made of, so that it is sharded as they are;
// segment() gives all of them to one group where the library takes them.
//
// cuDNN accumulates in f32 and rounds the probabilities to the half type before they are multiplied
// by v, where the ops keep them in f32. So against exact arithmetic an element of the result is off
// by at most 2 u max|v|, with u = 2^-8 of bf16 and 2^-11 of f16; the ops are off by u of
// the element itself. The bound holds for scores that f32 holds, whose own error, e 2^-22
// of the largest product of a row of q and one of k, comes on top of both. Of a row
// whose scores all overflow to -inf the ops make 0; what cuDNN makes of it is not stated.

// What a call is prepared for: memory of each operand, local to the rank. Up to two batch axes,
// then tokens and width; row-major or not, but as isReadable() says.
struct AttentionSpec {
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc o;
  bool causal = false;  // row i sees the keys 0 to i
  float scale = 1;
};

// Whether cuDNN reads or writes a tensor where it lies: the width without gaps, all other strides
// in vectors of 16 bytes and not 0. Others are copied, by the plan.
bool isReadable(const TensorDesc& desc, int64_t byte_offset);

// libheddle_cudnn: `extern "C" const CudnnModule* heddleCudnnModule()`.
struct CudnnModule {
  int64_t (*version)();  // as cudnnGetVersion()
  // q, k, v and o of run() are the operands a, b, bias and c. UserError, with what cuDNN says of
  // it, for what it has no plan for.
  std::shared_ptr<const PreparedMatmul> (*prepare)(const AttentionSpec& spec, int device);
};

// nullptr with the reason in `why`.
const CudnnModule* findCudnnModule(std::string& why);

// Which attentions of a fusion become one call on devices of a kind, with these sizes: those with
// widths of 8, 16, ... 128 and at least one key. A size without a value is not known.
SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes);

// compile() for devices with a library for attention. The program is good for any sizes with the
// same widths.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
