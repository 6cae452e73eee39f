// A C++ program that runs as every rank of a job. A fault ends or stops one rank. On each remaining
// rank, the program catches an exception and continues. tests/mpi_losses.sh runs it. Arguments: a
// host program, and a fault as for `heddle run --inject`.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/error.h"

namespace {

using namespace heddle;

std::string textOf(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void runRank(comm::World& world, host::Device& device, const char* path, const char* fault) {
  host::Context context{&device, &world};
  context.monitor_options.deadline = 2;
  host::ExecutableOptions options;
  options.inject = host::parseFault(fault);
  host::Executable executable(host::parseProgram(textOf(path), path), context, options);
  const TensorDesc desc =
      host::inputDesc(executable.program(), 0, {{"n", 64}}, world.rank(), world.size());
  const HostTensor values = randomTensor(desc.dtype, desc.sizes, 1, "x");
  const host::Tensor input = host::toDevice(device, device.allocator(), values, desc);
  executable.run({input}).wait();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const std::unique_ptr<comm::World> world = host::makeJobWorld(host::DeviceKind::Cpu, 0);
  const std::unique_ptr<host::Device> device = host::makeCpuDevice();
  try {
    runRank(*world, *device, argv[1], argv[2]);
  } catch (const UserError& error) {
    std::fprintf(stderr, "embedded rank %d goes on: %s\n", world->rank(), error.what());
    std::fflush(stderr);
    // Gives the other ranks time to print their errors.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return 5;
  }
  return 0;
}
