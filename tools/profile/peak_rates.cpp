#include "tools/profile/peak_rates.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "host/executable.h"
#include "host/run/completion.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "tools/bench/copy_runs.h"
#include "tools/bench/median.h"
#include "tools/heddle/job.h"

namespace heddle::tools {
namespace {

constexpr int kRuns = 5;

double copyRate(host::Device& device, codegen::ImageCache& images) {
  CopyRuns copies(device, images, std::make_shared<host::SharedStream>(device));
  std::vector<double> rates;
  for (int i = 0; i < kRuns; ++i) {
    copies.enqueue();
    rates.push_back(copies.bytesPerSecond());
  }
  return median(rates);
}

// Returns the number of rows of the square matrices. The product must be large enough to reach the
// peak rate of the device. On a CPU, the matrices of slow types are smaller, so that the
// measurement takes less time.
int64_t lengthFor(const host::Device& device, DType dtype) {
  if (device.kind() == host::DeviceKind::Cuda) return 4096;
  return dtype == DType::F32 || dtype == DType::F64 ? 1024 : 256;
}

double productRate(host::Device& device, codegen::ImageCache& images,
                   const host::MatmulWork& work) {
  const int64_t n = lengthFor(device, work.a);
  const std::string square = fmt::format("[{}, {}]", n, n);
  const std::string settings = work.tf32 ? " precision=tf32" : "";
  const std::string text = fmt::format(
      "heddle 1\nprogram product(%a: {}{}, %b: {}{}) -> (%c) {{\n  slot %c: {}{}\n"
      "  %c = allocate\n  call_library matmul(%a, %b) -> (%c){}\n}}\n",
      name(work.a), square, name(work.b), square, name(work.c), square, settings);
  host::Executable executable(host::parseProgram(text, "<product>"), {&device, nullptr, &images});
  std::vector<host::Argument> inputs;
  for (const DType dtype : {work.a, work.b}) {
    const TensorDesc desc = denseDesc(dtype, {n, n});
    const HostTensor values = randomBlock(desc, 0, "x");
    inputs.emplace_back(host::toDevice(device, device.allocator(), values, desc));
  }
  host::RunProfile profile;
  host::RunOptions options;
  options.profile = &profile;
  double best = 0;
  for (int i = 0; i <= kRuns; ++i) {  // one run more, because the first one also loads code
    executable.run(inputs, options).wait();
    TimesByInstruction times;
    addRun(profile, times);
    for (const auto& [instruction, each] : times) {
      if (!each.product || each.nanoseconds.empty()) continue;
      const double seconds = 1e-9 * static_cast<double>(each.nanoseconds.front());
      if (seconds > 0) best = std::max(best, each.operations / seconds);
    }
  }
  return best;
}

// Returns the measured rate. If the memory is too small, prints the message and returns 0.
double unlessOutOfMemory(const std::string& message, const std::function<double()>& measured) {
  try {
    return measured();
  } catch (const std::bad_alloc&) {
    say(message);
  } catch (const UserError& error) {
    if (error.code() != ErrorCode::OutOfMemory) throw;
    say(message);
  }
  return 0;
}

}  // namespace

PeakRates measurePeakRates(host::Device& device, codegen::ImageCache& images,
                           const TimesByInstruction& times, const std::string& subject) {
  PeakRates rates;
  if (device.kind() == host::DeviceKind::Null) return rates;
  rates.copy_bytes_per_second =
      unlessOutOfMemory(subject +
                            ": the device has too little memory left to measure the copy "
                            "bandwidth, so of_copy is empty",
                        [&] { return copyRate(device, images); });
  for (const auto& [instruction, each] : times) {
    if (!each.product || rates.productRate(*each.product) > 0) continue;
    host::MatmulWork kind = *each.product;
    kind.operations = 0;
    const double rate =
        unlessOutOfMemory(subject +
                              ": the device has too little memory left to measure the rate "
                              "of matrix products, so of_peak is empty",
                          [&] { return productRate(device, images, kind); });
    rates.products.emplace_back(kind, rate);
  }
  return rates;
}

}  // namespace heddle::tools
