// Times the host work of one instruction in a repeated run. The program has many instructions, and
// the device does nothing. Prints one JSON object per line.
//
//   bench_dispatch [RUNS]
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "bench/timing.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/executable.h"
#include "host/text/program_text.h"

namespace {

using namespace heddle;

constexpr int kInstructions = 1000;

// A device that plans and loads the kernels of the CPU device but launches none. The measured time
// includes the cost of filling argument blocks, but not the cost of kernels.
class DryDevice : public host::Device {
 public:
  host::DeviceKind kind() const override { return host::DeviceKind::Cpu; }
  std::string description() const override { return "dry"; }
  host::Allocator& allocator() override { return null_->allocator(); }
  host::Stream createStream() override { return null_->createStream(); }
  void destroyStream(host::Stream stream) noexcept override { null_->destroyStream(stream); }
  host::Event createEvent() override { return null_->createEvent(); }
  void destroyEvent(host::Event event) noexcept override { null_->destroyEvent(event); }
  void recordEvent(host::Event e, host::Stream s) override { null_->recordEvent(e, s); }
  void waitEvent(host::Stream s, host::Event e) override { null_->waitEvent(s, e); }
  bool eventDone(host::Event event) override { return null_->eventDone(event); }
  void synchronize(host::Event event) override { null_->synchronize(event); }
  const codegen::KernelCompiler* compiler() const override { return cpu_->compiler(); }
  host::KernelHandle load(const codegen::KernelImage& image, const std::string& entry) override {
    return cpu_->load(image, entry);
  }
  void launch(host::KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              host::Stream stream, const host::Issue& issue) override {
    null_->launch(kernel, stage, args, stream, issue);
  }
  std::shared_ptr<const host::PreparedMatmul> prepareMatmul(
      const host::MatmulSpec& spec, const host::AlgorithmChoices& choices) override {
    return null_->prepareMatmul(spec, choices);
  }
  int64_t libraryWorkspace(const host::LibraryCall& call) const override {
    return null_->libraryWorkspace(call);
  }
  void library(const host::LibraryCall& call, host::Stream stream,
               const host::Issue& issue) override {
    null_->library(call, stream, issue);
  }
  void communicate(comm::Communicator& c, std::span<const comm::Operation> group, host::Stream s,
                   const host::Issue& i) override {
    null_->communicate(c, group, s, i);
  }
  void copy(void* dst, const void* src, int64_t bytes, host::Stream s,
            const host::Issue& i) override {
    null_->copy(dst, src, bytes, s, i);
  }
  void fill(void* dst, int byte, int64_t bytes, host::Stream s, const host::Issue& i) override {
    null_->fill(dst, byte, bytes, s, i);
  }
  void hostTask(std::function<void()> task, host::Stream s, const host::Issue& i) override {
    null_->hostTask(std::move(task), s, i);
  }

 private:
  std::unique_ptr<host::Device> null_ = host::makeNullDevice();
  std::unique_ptr<host::Device> cpu_ = host::makeCpuDevice({.threads = 1, .adversarial_seed = {}});
};

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

// Returns the median nanoseconds per instruction.
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

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] {
    const int runs = argc > 1 ? std::atoi(argv[1]) : 200;
    const std::string launch = "    launch @add(%x, %y) -> (%z) stream=0";
    const std::string matmul = "    call_library matmul(%x, %y) -> (%z) stream=0";
    const std::string memory = "    %t = allocate stream=0\n    free %t stream=0";
    DryDevice dry;
    const std::unique_ptr<host::Device> null = host::makeNullDevice();
    report("launch, arguments filled", measure(dry, launch, 1, runs));
    report("launch, null device", measure(*null, launch, 1, runs));
    report("matmul, null device", measure(*null, matmul, 1, runs));
    report("allocate and free, null device", measure(*null, memory, 2, runs));
  });
}
