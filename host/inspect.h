#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/plan/generated.h"
#include "host/device/device.h"
#include "host/program/program.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// The texts of one kernel of a program, for the sizes of a run.
struct KernelTexts {
  std::string name;  // name of the kernel in the program
  // The members of codegen::KernelTexts (codegen/emit/plan_kernel.h).
  std::string schedule;
  std::string source;
};

// Returns the texts of the kernels that rank `rank` launches. The list contains each kernel once,
// in the order of the first launches. The tensors of the caller are assumed to be aligned. The
// program must contain no Call instructions. Throws UserError if a size has no value or contradicts
// another one, or if the program names an unknown candidate (Kernel::candidate).
// `clusters`: the GPU has clusters (codegen::RunSizes::clusters).
std::vector<KernelTexts> kernelTexts(const Program& program, const SizeBindings& sizes,
                                     int64_t rank, int64_t ranks, DeviceKind device,
                                     bool clusters = true);

// A kernel with the operands of one of its launches on a rank. `kernel` contains the segment from
// which a run generates the kernel. This segment can differ from the program's: if a tensor without
// axes decides sizes, it is in host memory, and the kernel usually takes its element by value. The
// reference `kernel` is valid until forEachLaunchedKernel() returns.
struct LaunchedKernel {
  const Kernel& kernel;
  codegen::Target target;
  std::vector<TensorDesc> in;  // empty descriptor: the kernel takes the input by value
  std::vector<TensorDesc> out;
  std::vector<int32_t> alignments;  // of `in`, then of `out`, in bytes
  codegen::RunSizes run;
  // Per input: the value, if the sizes of the run determine it and the kernel takes the input by
  // value. nullopt: a tensor in memory, or a scalar whose value only the run knows.
  std::vector<std::optional<Scalar>> scalars;

  std::vector<codegen::Candidate> candidates() const;
  // Returns the choice that the program makes (Kernel::candidate), or nullopt if it makes none.
  // Throws UserError if there is no such candidate.
  std::optional<codegen::KernelChoice> choice() const;
};

// Calls visit(kernel) for the kernels that rank `rank` launches, in the order of their launches:
// each kernel once (First), or each kernel once per different combination of `in`, `out` and
// `alignments` (All). The rules of kernelTexts() apply, except that candidates are not looked up.
enum class Launches : uint8_t { First, All };
void forEachLaunchedKernel(const Program& program, const SizeBindings& sizes, int64_t rank,
                           int64_t ranks, DeviceKind device, Launches launches,
                           const std::function<void(const LaunchedKernel&)>& visit);

// The candidates of one kernel of a program (codegen/bind/candidates.h), for the sizes of a run.
struct KernelCandidates {
  struct Row {
    std::string parameters;  // codegen::print() of the candidate's choice
    size_t launches = 0;     // number of stages, each of which is one launch on the device
    int64_t workspace_bytes = 0;
  };
  std::string name;       // name of the kernel in the program
  std::vector<Row> rows;  // in the order of codegen::candidates(): the default candidate is first
  // Index in `rows` of the candidate that the program names; 0 if it names none.
  size_t used = 0;
};

// Returns the candidates of the kernels that rank `rank` launches. The rules of kernelTexts()
// apply. Throws UserError if a kernel names an unknown candidate.
std::vector<KernelCandidates> kernelCandidates(const Program& program, const SizeBindings& sizes,
                                               int64_t rank, int64_t ranks, DeviceKind device,
                                               bool clusters = true);

// Returns one line per segment, such as "g0 kernel, 22 op(s) -> %y".
std::vector<std::string> segmentTexts(const SegmentedFusion& segmented);

}  // namespace heddle::host
