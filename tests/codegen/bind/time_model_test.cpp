// Tests predicted times of kernels. No test depends on a measured time.
#include "codegen/bind/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codegen/bind/candidate_numbers.h"
#include "tests/codegen/candidate_cases.h"

namespace heddle::codegen::time_model_test {
namespace {

using testing::CandidateCase;
using testing::candidateCases;
using testing::CandidateTensors;

const Machine kGpu = machineOf(Target::Cuda, "cuda:0 NVIDIA H100 80GB HBM3 (sm_90)");
const Machine kCpu = machineOf(Target::Cpp, "cpu (2 threads, avx2, oneDNN 2.6.3)");

// A segment, and the sizes of its inputs. Tensors of these sizes need not exist.
struct Case {
  std::string text;
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> outputs;
  bool second_is_transposed = false;  // the second input has the strides of a transposed tensor
};

struct Predicted {
  std::vector<Candidate> all;
  std::vector<double> seconds;

  // Returns the seconds of the first candidate with these parameters.
  double of(const std::string& parameters) const {
    return seconds[findCandidate(all, parameters, "k")];
  }
};

Predicted predict(const Case& given, const Machine& machine) {
  const Fusion fusion = parseFusion("heddle 1\nfusion f" + given.text);
  std::vector<TensorDesc> in;
  std::vector<TensorDesc> out;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    in.push_back(denseDesc(fusion.tensor(fusion.inputs()[i]).dtype, given.inputs[i]));
  }
  if (given.second_is_transposed) in[1].strides = {1, in[1].sizes[0]};
  for (size_t i = 0; i < given.outputs.size(); ++i) {
    out.push_back(denseDesc(fusion.tensor(fusion.outputs()[i]).dtype, given.outputs[i]));
  }
  const RunSizes run = unshardedSizes(fusion, in, out);
  Predicted predicted;
  predicted.all = candidates(fusion, in, out, machine.target, {}, run);
  predicted.seconds = predictedSeconds(
      predicted.all, candidateNumbers(fusion, in, out, machine.target, {}, run, predicted.all),
      machine);
  return predicted;
}

std::string pointwise(const std::string& op) {
  return "(%x: f32[n, m]) {\n  %y = " + op + "(%x)\n  return %y\n}\n";
}

const std::string kSoftmax =
    "(%x: f32[n, m]) {\n  %m = max(%x, axes=[1])\n  %e = broadcast(%m, axes=[1])\n"
    "  %d = sub(%x, %e)\n  %p = exp(%d)\n  %s = sum(%p, axes=[1])\n"
    "  %t = broadcast(%s, axes=[1])\n  %w = div(%p, %t)\n  return %w\n}\n";
const std::string kSum = "(%x: f32[n, m]) {\n  %z = sum(%x, axes=[1])\n  return %z\n}\n";

TEST(TimeModel, EveryCandidateHasATime) {
  for (const Machine& machine : {kGpu, kCpu}) {
    for (const CandidateCase& each : candidateCases()) {
      CandidateTensors tensors(each);
      const std::vector<Candidate> all = tensors.candidatesFor(machine.target);
      const std::vector<double> seconds =
          predictedSeconds(all, tensors.numbersOf(all, machine.target), machine);
      ASSERT_EQ(seconds.size(), all.size());
      for (const double each_seconds : seconds) {
        EXPECT_TRUE(std::isfinite(each_seconds)) << each.text;
        EXPECT_GE(each_seconds, machine.launch_seconds) << each.text;
        EXPECT_LT(each_seconds, 1e-3) << each.text;  // every case has at most 60,000 elements
      }
    }
  }
}

// A large copy takes as long as its bytes need, on both kinds of devices.
TEST(TimeModel, LargePointwiseKernelsMoveTheirBytes) {
  const double bytes = 2.0 * 4 * 16384 * 16384;
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted =
        predict({pointwise("neg"), {{16384, 16384}}, {{16384, 16384}}}, machine);
    const double expected = bytes / machine.bytes_per_second;
    EXPECT_GT(predicted.seconds[0], expected);
    EXPECT_LT(predicted.seconds[0], 1.2 * expected);
  }
}

TEST(TimeModel, SmallKernelsAreAlike) {
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted = predict({pointwise("neg"), {{4, 32}}, {{4, 32}}}, machine);
    ASSERT_GE(predicted.all.size(), 2u);
    for (const double seconds : predicted.seconds) {
      EXPECT_NEAR(seconds, predicted.seconds[0], 0.03 * predicted.seconds[0]);
    }
  }
}

TEST(TimeModel, NamesOfOpsHaveNoInfluence) {
  for (const Machine& machine : {kGpu, kCpu}) {
    const auto secondsFor = [&](const std::string& op) {
      return predict({pointwise(op), {{512, 512}}, {{512, 512}}}, machine).seconds;
    };
    EXPECT_EQ(secondsFor("exp"), secondsFor("sin"));  // both call a function
  }
}

TEST(TimeModel, RereadRowsTakeLonger) {
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted = predict({kSoftmax, {{16384, 4096}}, {{16384, 4096}}}, machine);
    EXPECT_GT(predicted.of("rows looped=1"), 1.03 * predicted.of("rows looped=0"));
    EXPECT_GT(predicted.of("sweeps"), 1.03 * predicted.of("rows looped=0"));
  }
}

// The elements of a row along a middle axis are far apart in memory. Bundles (groups of
// neighbouring rows) read no unused bytes.
TEST(TimeModel, BundlesMoveTheirBytesOnce) {
  const std::string softmax = "(%x: f32[n, k, m]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n";
  const double bytes = 2.0 * 4 * 2048 * 200 * 512;
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted = predict({softmax, {{2048, 200, 512}}, {{2048, 200, 512}}}, machine);
    EXPECT_EQ(predicted.all[0].choice.family, "rows");
    const double expected = bytes / machine.bytes_per_second;
    EXPECT_GT(predicted.seconds[0], expected);
    EXPECT_LT(predicted.seconds[0], (machine.target == Target::Cuda ? 1.2 : 2.5) * expected);
  }
}

// If blocks share a row, the second sweep finds the row in the cache.
TEST(TimeModel, LongRowsShouldBeShared) {
  for (const auto& [rows, elements] : {std::pair<int64_t, int64_t>{128, 1 << 20}, {500, 400000}}) {
    const Predicted predicted = predict({kSoftmax, {{rows, elements}}, {{rows, elements}}}, kGpu);
    EXPECT_EQ(predicted.all[0].choice.family, "divided");
    EXPECT_LT(predicted.of("divided"), 0.95 * predicted.of("sweeps")) << rows;
    EXPECT_LT(predicted.of("divided"), 0.95 * predicted.of("rows looped=1")) << rows;
  }
  const Predicted shorter = predict({kSoftmax, {{4000, 20000}}, {{4000, 20000}}}, kGpu);
  EXPECT_GT(shorter.of("divided"), 1.05 * shorter.of("rows looped=0"));
}

// Without a split, one long row keeps one block or one thread busy.
TEST(TimeModel, FewLongRowsNeedSplits) {
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted = predict({kSum, {{1, 10000000}}, {{1}}}, machine);
    EXPECT_GT(predicted.of("splits=1"), 1.1 * predicted.seconds[0]);
  }
}

// With one lane instead of four, a thread has a quarter of the bytes in flight. These are too few
// for the full bandwidth.
TEST(TimeModel, FewBytesInFlightTakeLonger) {
  LaunchWork work;
  work.blocks = 132 * 64;
  work.threads = 256;
  work.thread_bytes = 16;
  work.bytes = 132.0 * 64 * 256 * 16;
  LaunchWork narrow = work;
  narrow.thread_bytes = 4;
  narrow.steps = 4;
  EXPECT_GT(secondsOf(narrow, kGpu), 1.5 * secondsOf(work, kGpu));
}

TEST(TimeModel, LastTilesMayLeaveThreadsIdle) {
  LaunchWork work;
  work.operations = 1e9;
  work.blocks = 2;
  LaunchWork uneven = work;
  uneven.blocks = 3;
  EXPECT_NEAR(secondsOf(uneven, kCpu), 4.0 / 3 * secondsOf(work, kCpu), 1e-6);
}

// Vectors of 8 lanes leave over 5 of 61 elements, vectors of 16 lanes leave over 13, and vectors of
// 32 lanes leave over 29.
TEST(TimeModel, ElementsThatDoNotFillAVectorAreSlow) {
  const Predicted predicted = predict({kSum, {{100000, 61}}, {{100000}}}, kCpu);
  EXPECT_LT(predicted.of("lanes=8"), predicted.of("lanes=16"));
  EXPECT_LT(predicted.of("lanes=16"), predicted.of("lanes=32"));
}

TEST(TimeModel, TransposedAccessMovesMoreBytes) {
  const std::string text = "(%x: f32[n, m], %z: f32[n, m]) {\n  %y = sub(%x, %z)\n  return %y\n}\n";
  for (const Machine& machine : {kGpu, kCpu}) {
    const Predicted predicted =
        predict({text, {{8192, 8192}, {8192, 8192}}, {{8192, 8192}}, true}, machine);
    EXPECT_GT(predicted.of("loops"), 1.5 * predicted.of("squares"));
  }
}

TEST(TimeModel, DescriptionsSelectTheDevice) {
  const Machine h200 = machineOf(Target::Cuda, "cuda:3 NVIDIA H200 (sm_90)");
  EXPECT_GT(h200.bytes_per_second, kGpu.bytes_per_second);
  EXPECT_EQ(h200.processors, kGpu.processors);
  const Machine unknown = machineOf(Target::Cuda, "cuda:0 NVIDIA Z9 (sm_990)");
  EXPECT_EQ(unknown.bytes_per_second, kGpu.bytes_per_second);
  EXPECT_EQ(kCpu.processors, 2);
  EXPECT_EQ(machineOf(Target::Cpp, "cpu (16 threads, avx512)").processors, 16);
  for (const char* text : {"", "cpu", "cpu (many threads)", "cpu (0 threads)", "cpu (3 lanes)"}) {
    EXPECT_EQ(machineOf(Target::Cpp, text).processors, 1) << text;
  }
}

}  // namespace
}  // namespace heddle::codegen::time_model_test
