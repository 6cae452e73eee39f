// Times the host work of repeated runs, of single instructions, and of new plans. The devices
// launch nothing. Prints one JSON object per line.
//
//   bench_dispatch [RUNS]
#include <fmt/format.h>

#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "bench/dry_device.h"
#include "bench/timing.h"
#include "host/device/null/null_device.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "host/job/worlds.h"
#include "host/prepared_run.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/count_heap.h"

namespace {

using namespace heddle;
using bench::DryDevice;

constexpr int kInstructions = 1000;

std::string programText(const std::string& body) {
  return fmt::format(R"(heddle 1
kernel @add {{
  fusion add(%x: f32[n, n], %y: f32[n, n]) with n = 16 {{
    %z = add(%x, %y)
    return %z
  }}
}}
program bench(%x: f32[n, n], %y: f32[n, n]) -> (%z) with n = 16 {{
  slot %z: f32[n, n]
  slot %t: f32[n, n]
  %z = allocate stream=0
  for i in 0 .. {} {{
{}
  }}
}}
)",
                     kInstructions, body);
}

// Returns the median nanoseconds per instruction. `body` has `per_trip` instructions.
double measure(host::Device& device, const std::string& body, int per_trip, int runs) {
  host::Executable executable(host::parseProgram(programText(body), "bench"),
                              {&device, nullptr, nullptr});
  static std::byte memory[16 * 16 * sizeof(float)];
  const host::Tensor tensor{memory, denseDesc(DType::F32, {16, 16}), nullptr};
  const std::vector<host::Argument> inputs{tensor, tensor};
  const double ns = bench::medianOf(runs, bench::kWarm,
                                    [&] { return bench::hostNs([&] { executable.run(inputs); }); });
  return ns / (kInstructions * per_trip);
}

void report(const std::string& name, double nanoseconds) {
  fmt::print("{{\"name\": \"dispatch {}\", \"ns_per_instruction\": {:.1f}}}\n", name, nanoseconds);
}

// Returns a fusion of `inputs` tensors and `kernels` kernels. Each flip begins a kernel, because
// its operand must be in memory. If `differ` is true, no two kernels have the same text.
Fusion chainOf(int kernels, int inputs, bool differ = false) {
  std::string text = "heddle 1\nfusion chain(";
  for (int i = 0; i < inputs; ++i) text += fmt::format("{}%x{}: f32[n, m]", i == 0 ? "" : ", ", i);
  text += ") with n = 16, m = 16 {\n";
  std::string last = "x0";
  for (int i = 1; i < inputs; ++i) {
    text += fmt::format("  %s{} = add(%{}, %x{})\n", i, last, i);
    last = fmt::format("s{}", i);
  }
  for (int i = 0; i < kernels; ++i) {
    text += differ ? fmt::format("  %e{} = add(%{}, {}.0)\n", i, last, i)
                   : fmt::format("  %e{} = exp(%{})\n", i, last);
    last = fmt::format("e{}", i);
    if (i + 1 == kernels) break;
    text += fmt::format("  %f{} = flip(%{}, axes=[{}])\n", i, last, i % 2);
    last = fmt::format("f{}", i);
  }
  return parseFusion(text + "  return %" + last + "\n}\n");
}

std::vector<host::Argument> tensorsOf(int count, int64_t n) {
  alignas(64) static std::byte memory[16 * 16 * sizeof(float)];  // no kernel reads it
  return std::vector<host::Argument>(static_cast<size_t>(count),
                                     host::Tensor{memory, denseDesc(DType::F32, {n, 16}), nullptr});
}

// Reports the time and the heap allocations of one repeated run.
template <class Run>
void reportRun(const std::string& name, int kernels, int inputs, int rounds, const Run& run) {
  constexpr int kRuns = 1000;  // per round
  const double ns = bench::medianOf(rounds, bench::kWarm,
                                    [&] {
                                      return bench::hostNs([&] {
                                        for (int i = 0; i < kRuns; ++i) run();
                                      });
                                    }) /
                    kRuns;
  const int64_t before = host::testing::heapAllocations();
  for (int i = 0; i < kRuns; ++i) run();
  const double allocations = static_cast<double>(host::testing::heapAllocations() - before) / kRuns;
  fmt::print(
      "{{\"name\": \"run {}, {} kernels, {} inputs\", \"ns_per_run\": {:.0f}, "
      "\"allocations_per_run\": {:.2f}}}\n",
      name, kernels, inputs, ns, allocations);
}

void measureRuns(host::Device& device, int kernels, int inputs, int rounds) {
  const Fusion fusion = chainOf(kernels, inputs);
  const std::vector<host::Argument> arguments = tensorsOf(inputs, 16);
  host::Executable executable(host::compile(fusion, 1), {&device});
  reportRun("executable", kernels, inputs, rounds, [&] { executable.run(arguments); });
  host::FusionExecutor executor(fusion, {&device});
  reportRun("fusion executor", kernels, inputs, rounds, [&] { executor.run(arguments); });
}

// Reports the time of runs with many inputs, such as a step of an optimizer. A prepared run does
// not compare its inputs with the inputs of earlier runs.
void measureManyInputs(host::Device& device, int rounds) {
  constexpr int kInputs = 200;
  const std::vector<host::Argument> arguments = tensorsOf(kInputs, 16);
  host::FusionExecutor executor(chainOf(1, kInputs), {&device});
  reportRun("fusion executor", 1, kInputs, rounds, [&] { executor.run(arguments); });
  host::PreparedRun prepared = executor.prepareRun(arguments);
  reportRun("prepared run", 1, kInputs, rounds, [&] { prepared.run(); });
}

// Reports the time of the first run with new sizes. Its kernels are loaded already.
void measureNewPlans(host::Device& device, const std::string& name, int rounds, bool differ) {
  constexpr int kKernels = 40;
  host::FusionExecutor executor(chainOf(kKernels, 1, differ), {&device});
  int64_t n = 1024;
  const double ns = bench::medianOf(rounds, bench::kWarm, [&] {
    const std::vector<host::Argument> arguments = tensorsOf(1, n += 16);
    return bench::hostNs([&] { executor.run(arguments); });
  });
  fmt::print("{{\"name\": \"new plan, {}{} kernels, {}\", \"us_per_plan\": {:.1f}}}\n", kKernels,
             differ ? " different" : "", name, ns / 1000);
}

// Returns the text of kernel `i`: softmax, a norm, a transpose, or parts that share a launch, in
// turn. No kernel is a single loop. `i` makes the text of each kernel unique.
std::string tileKernel(int i) {
  static const std::string kSoftmax =
      "  %s = add(%x, {0}.0)\n  %z = softmax(%s, axis=1)\n  return %z\n";
  static const std::string kNorm =
      "  %q = mul(%x, %x)\n  %m = sum(%q, axes=[1], keepdim=true)\n  %r = rsqrt(%m)\n"
      "  %v = mul(%x, %r)\n  %z = add(%v, {0}.0)\n  return %z\n";
  static const std::string kTranspose = "  %s = add(%x, %y)\n  %z = add(%s, {0}.0)\n  return %z\n";
  static const std::string kShared =
      "  %z = add(%x, {0}.0)\n  %w = mul(%y, {0}.0)\n"
      "  return %z, %w\n";
  const std::string* const bodies[] = {&kSoftmax, &kNorm, &kTranspose, &kShared};
  const bool reads_both = i % 4 >= 2;
  return fmt::format(
      "kernel @k{0} {{\n  fusion k{0}(%x: f32[n, m]{1}) with n = 64, m = 96 {{\n{2}  }}\n}}\n", i,
      reads_both ? ", %y: f32[n, m]" : "", fmt::format(fmt::runtime(*bodies[i % 4]), i));
}

host::Program tileProgram(int kernels) {
  std::string text = "heddle 1\n";
  std::string slots;
  std::string steps;
  for (int i = 0; i < kernels; ++i) {
    text += tileKernel(i);
    const bool has_w = i % 4 == 3;
    std::vector<std::string> temporaries;
    if (i > 0) temporaries.push_back(fmt::format("%z{}", i));
    if (has_w) temporaries.push_back(fmt::format("%w{}", i));
    slots += fmt::format("  slot %z{0}: f32[n, m]\n  slot %w{0}: f32[n, m]\n", i);
    steps += fmt::format("  %z{} = allocate stream=0\n", i);
    if (has_w) steps += fmt::format("  %w{} = allocate stream=0\n", i);
    steps += fmt::format("  launch @k{0}(%x{1}) -> (%z{0}{2}) stream=0\n", i,
                         i % 4 >= 2 ? ", %y" : "", has_w ? fmt::format(", %w{}", i) : "");
    for (const std::string& slot : temporaries) steps += fmt::format("  free {} stream=0\n", slot);
  }
  text += fmt::format(
      "program bench(%x: f32[n, m], %y: f32[n, m]) -> (%z0) with n = 64, m = 96 {{\n{}{}}}\n",
      slots, steps);
  return host::parseProgram(text, "bench");
}

// Reports the time of a new plan for kernels that are tile programs or share a launch.
void measureNewTilePlans(host::Device& device, int rounds) {
  constexpr int kKernels = 40;
  alignas(64) static std::byte memory[64];  // no kernel reads it
  host::Executable executable(tileProgram(kKernels), {&device});
  int64_t n = 1024;
  const double ns = bench::medianOf(rounds, bench::kWarm, [&] {
    n += 64;
    TensorDesc transposed = denseDesc(DType::F32, {n, 4096});
    transposed.strides = {1, n};
    const std::vector<host::Argument> arguments{
        host::Tensor{memory, denseDesc(DType::F32, {n, 4096}), nullptr},
        host::Tensor{memory, transposed, nullptr}};
    return bench::hostNs([&] { executable.run(arguments); });
  });
  fmt::print(
      "{{\"name\": \"new plan, {} tile programs and shared launches\", \"us_per_plan\": {:.1f}, "
      "\"texts\": {}}}\n",
      kKernels, ns / 1000, executable.stats().kernel_texts);
}

// Reports the time of a new plan on two ranks, which are threads of this process. All tensors are
// sharded along their rows, so no kernel needs elements of the other rank.
void measureNewPlansOnRanks(int rounds) {
  constexpr int kKernels = 40;
  constexpr int kRanks = 2;
  std::string text = "heddle 1\nmesh @m = [x=2]\nfusion chain(%e0: f32[n, m] shard(@m, 0: x)) {\n";
  for (int i = 0; i < kKernels; ++i) {
    text += fmt::format("  %f{0} = flip(%e{0}, axes=[1])\n  %e{1} = add(%f{0}, {0}.0)\n", i, i + 1);
  }
  const Fusion fusion = parseFusion(fmt::format("{}  return %e{}\n}}\n", text, kKernels));
  auto worlds = host::makeInProcessWorldsFor(host::DeviceKind::Cpu, kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      DryDevice device;
      host::FusionExecutor executor(fusion, {&device, worlds[static_cast<size_t>(rank)].get()});
      int64_t n = 1024;
      const double ns = bench::medianOf(rounds, bench::kWarm, [&] {
        std::vector<host::Argument> arguments = tensorsOf(1, (n += 16) / kRanks);
        TensorDesc& desc = std::get<host::Tensor>(arguments[0]).desc;
        desc.global = {n, 16};
        desc.offset = {rank * n / kRanks, 0};
        return bench::hostNs([&] { executor.run(arguments); });
      });
      if (rank > 0) return;
      fmt::print(
          "{{\"name\": \"new plan, {} different kernels, {} ranks\", \"us_per_plan\": {:.1f}}}\n",
          kKernels, kRanks, ns / 1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] {
    const int runs = heddle::bench::roundsOf(argc, argv, 200);
    const std::string launch = "    launch @add(%x, %y) -> (%z) stream=0";
    const std::string matmul = "    call_library matmul(%x, %y) -> (%z) stream=0";
    const std::string memory = "    %t = allocate stream=0\n    free %t stream=0";
    DryDevice dry;
    const std::unique_ptr<host::Device> null = host::makeNullDevice();
    report("launch, arguments filled", measure(dry, launch, 1, runs));
    report("launch, null device", measure(*null, launch, 1, runs));
    report("matmul, null device", measure(*null, matmul, 1, runs));
    report("allocate and free, null device", measure(*null, memory, 2, runs));
    for (int kernels : {1, 10, 100}) {
      for (int inputs : {1, 8}) measureRuns(dry, kernels, inputs, runs);
    }
    measureManyInputs(dry, runs);
    measureNewPlans(*null, "null device", runs, false);
    measureNewPlans(dry, "dry device", runs, false);
    measureNewPlans(dry, "dry device", runs, true);
    measureNewTilePlans(dry, runs);
    measureNewPlansOnRanks(runs);
  });
}
