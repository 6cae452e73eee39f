// A rank of a C++ program throws an exception of its own, which destroys the World, or leaves the
// job in another way. For tests/job_leaves.sh. Arguments:
// - who starts MPI: heddle or program
// - when rank 1 throws: first (before its first run), later (after it) or never; or
//   early: it throws nothing, but leaves while the other ranks wait in a call of their World
//   keeps: it throws nothing, but keeps its World when the other ranks leave
// - how a rank ends after it has caught an exception: abort, finalize or return
// - the device: cpu or cuda
//
// Exits with 77 if there are fewer GPUs than ranks.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "ir/graph/builder.h"

namespace {

using namespace heddle;

Fusion sumOf(int ranks) {
  FusionBuilder b("f");
  const MeshId mesh = b.mesh({"m", {{MeshAxis::X, ranks}}, {}});
  const auto place = [&](ValueId value, std::vector<std::vector<MeshAxis>> axes) {
    Sharding sharding;
    sharding.mesh = mesh;
    sharding.axes = std::move(axes);
    b.shard(value, std::move(sharding));
    return value;
  };
  const ValueId x = place(b.input("x", DType::F32, {Size::symbol("t")}), {{MeshAxis::X}});
  b.output(place(b.name("y").reduce("sum", b.pointwise("neg", {x}), {0}), {}));
  return std::move(b).build();
}

void runRank(const std::string& when, int gpu) {
  const auto device = gpu < 0 ? host::makeCpuDevice() : host::makeCudaDevice(gpu);
  const auto world = host::makeJobWorld(device->kind(), std::max(gpu, 0));
  const bool throws = world->rank() == 1;
  const auto leave = [&] {
    // Gives the other ranks time to begin their wait for this rank.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    world->fail("its reason");
    throw std::runtime_error("thrown by the program");
  };
  host::Context context{device.get(), world.get()};
  if (when == "keeps") context.monitor_options.patience = 1;
  host::FusionExecutor executor(sumOf(world->size()), context);
  const HostTensor x = randomTensor(DType::F32, {4}, 1, "x");
  TensorDesc desc = denseDesc(DType::F32, {4});
  desc.global = {4 * world->size()};
  desc.offset = {4 * world->rank()};
  const host::Tensor input = host::toDevice(*device, device->allocator(), x, desc);
  if (throws && when == "first") leave();
  executor.run({input}).wait();
  if (throws && when == "later") leave();
  executor.run({input}).wait();
  if (!throws && when == "early") world->barrier();
  if (throws && when == "keeps") std::this_thread::sleep_for(std::chrono::seconds(30));
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (argc < 5 || rank == nullptr || ranks == nullptr) return 1;
  const bool starts = std::string(argv[1]) == "program", on_gpu = std::string(argv[4]) == "cuda";
  const std::string end = argv[3];
  std::string why;
  if (on_gpu && host::cudaDeviceCount(why) < std::atoi(ranks)) return 77;
  int provided = 0;
  if (starts) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  try {
    runRank(argv[2], on_gpu ? std::atoi(rank) : -1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %s caught: %s\n", rank, error.what());
    std::fflush(stderr);
    if (end == "abort" || end == "return") std::this_thread::sleep_for(std::chrono::seconds(1));
    if (end == "abort") MPI_Abort(MPI_COMM_WORLD, 3);
    if (end == "return") return 3;
  }
  if (starts) MPI_Finalize();
  return 0;
}
