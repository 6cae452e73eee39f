// Times collectives of a host program and the same collectives as plain NCCL calls, on all GPUs of
// the machine, with one thread and one rank per GPU. Measures the GPU times of both alternately.
// Prints one JSON object per kind of collective and size:
// - gpu_us: GPU time of one collective in a program of several collectives, measured by events
// - alone_us: GPU time of a program with only this collective, including the start of the run
// - host_us: host time of one Communicate instruction with its Wait
// - nccl_us, nccl_alone_us, nccl_host_us: the same for plain calls of NCCL
// - of_nccl: nccl_us / gpu_us
//
//   bench_cuda_collectives [BYTES ...]     default 16 KiB to 1 GiB; bytes of the larger buffer
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/cuda_timing.h"
#include "comm/in_process/worlds.h"
#include "host/device/load_module.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace {

using namespace heddle;
using bench::check;

void check(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) userError("{}: {}", call, ncclGetErrorString(status));
}

struct Kind {
  const char* name;
  const char* input;   // type of the send buffer in the host program
  const char* output;  // type of the receive buffer
  const char* reduce;  // reduction in the text of the host program
  std::function<void(const void*, void*, size_t part, int ranks, ncclComm_t, cudaStream_t)> raw;
};

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
void rawAllToAll(const void* in, void* out, size_t part, int, ncclComm_t comm,
                 cudaStream_t stream) {
  check(ncclAlltoAll(in, out, part, ncclFloat, comm, stream), "ncclAlltoAll");
}
#else
// Sends from every rank to every rank. NCCL versions before 2.28 have no all-to-all.
void rawAllToAll(const void* in, void* out, size_t part, int ranks, ncclComm_t comm,
                 cudaStream_t stream) {
  const auto at = [&](auto* base, int rank) { return base + static_cast<size_t>(rank) * part; };
  check(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < ranks; ++r) {
    check(ncclSend(at(static_cast<const float*>(in), r), part, ncclFloat, r, comm, stream),
          "ncclSend");
    check(ncclRecv(at(static_cast<float*>(out), r), part, ncclFloat, r, comm, stream), "ncclRecv");
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
}
#endif

// The size `c` in the types, and the argument `part` of Kind::raw, are the number of elements of
// one part. An unsharded tensor consists of one part per rank.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"allreduce", "f32[@m.x, c] shard(@m)", "f32[@m.x, c] shard(@m)", " op=sum",
       [](const void* in, void* out, size_t part, int ranks, ncclComm_t comm, cudaStream_t stream) {
         check(ncclAllReduce(in, out, part * static_cast<size_t>(ranks), ncclFloat, ncclSum, comm,
                             stream),
               "ncclAllReduce");
       }},
      {"allgather", "f32[@m.x, c] shard(@m, 0: x)", "f32[@m.x, c] shard(@m)", "",
       [](const void* in, void* out, size_t part, int, ncclComm_t comm, cudaStream_t stream) {
         check(ncclAllGather(in, out, part, ncclFloat, comm, stream), "ncclAllGather");
       }},
      {"reduce_scatter", "f32[@m.x, c] shard(@m)", "f32[@m.x, c] shard(@m, 0: x)", " op=sum",
       [](const void* in, void* out, size_t part, int, ncclComm_t comm, cudaStream_t stream) {
         check(ncclReduceScatter(in, out, part, ncclFloat, ncclSum, comm, stream),
               "ncclReduceScatter");
       }},
      {"all_to_all", "f32[@m.x, c] shard(@m)", "f32[@m.x, c] shard(@m)", "", rawAllToAll},
  };
  return all;
}

// Returns a program with `posts` collectives on the same two buffers, each followed by its wait.
host::Program programOf(const Kind& kind, int64_t part, int posts) {
  std::string text = fmt::format(
      "heddle 1\nmesh @m = [x=ranks]\nprogram main(%x: {}) -> (%y) with c = {} {{\n"
      "  slot %y: {}\n  %y = allocate stream=0\n",
      kind.input, part, kind.output);
  for (int i = 0; i < posts; ++i) {
    text += fmt::format(
        "  $t{0} = communicate {1} %x -> %y team=@m[x]{2} stream=0\n"
        "  wait $t{0} stream=0\n",
        i, kind.name, kind.reduce);
  }
  return host::parseProgram(text + "}\n");
}

class Rank {
 public:
  explicit Rank(std::unique_ptr<comm::World> world)
      : world_(std::move(world)), device_(host::makeCudaDevice(world_->rank())) {
    check(cudaSetDevice(world_->rank()), "cudaSetDevice");
    ncclUniqueId id{};
    if (world_->rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string bytes(id.internal, sizeof id.internal);
    const std::string first = world_->exchange(bytes).front();
    std::copy(first.begin(), first.end(), id.internal);
    check(ncclCommInitRank(&raw_, world_->size(), id, world_->rank()), "ncclCommInitRank");
    const int ordinal = world_->rank();
    world_ = host::makeNcclWorld(std::move(world_), ordinal);
    check(cudaStreamCreate(&stream_), "cudaStreamCreate");
    timer_ = std::make_unique<bench::GpuTimer>(stream_);
  }

  void run(const Kind& kind, int64_t bytes) {
    const int ranks = world_->size();
    const int64_t part = std::max<int64_t>(1, bytes / ranks / static_cast<int64_t>(sizeof(float)));
    const host::Program one = programOf(kind, part, 1);
    const host::Program many = programOf(kind, part, kManyPosts);
    host::Executable executable(one, {device_.get(), world_.get(), nullptr});
    host::Executable executable_many(many, {device_.get(), world_.get(), nullptr});
    const SizeBindings sizes{{"c", part}};
    host::Tensor in = tensorOf(host::inputDesc(one, 0, sizes, world_->rank(), ranks));
    host::Tensor out = tensorOf(host::outputDesc(one, 0, sizes, world_->rank(), ranks));
    host::RunOptions options;
    options.stream = stream_;
    options.preallocated = {out};
    const auto ours = [&] { executable.run({in}, options); };
    const auto ours_many = [&] { executable_many.run({in}, options); };
    const auto raw = [&] {
      kind.raw(in.data, out.data, static_cast<size_t>(part), ranks, raw_, stream_);
    };
    const auto raw_many = [&] {
      for (int i = 0; i < kManyPosts; ++i) raw();
    };
    // In a series of collectives, the start of the run counts little. `host_us` is a difference, so
    // that it excludes the host time of the run itself.
    const auto [many_us, raw_many_us] = gpuPair(ours_many, raw_many, bytes);
    const double ours_us = many_us / kManyPosts, raw_us = raw_many_us / kManyPosts;
    const auto [alone_us, raw_alone_us] = gpuPair(ours, raw, bytes);
    const double host_one = hostUs(ours);
    const double host_us = (hostUs(ours_many) - host_one) / (kManyPosts - 1);
    const double host_raw_us = hostUs(raw);
    if (world_->rank() != 0) return;
    fmt::print(
        "{{\"name\": \"{}\", \"bytes\": {}, \"gpus\": {}, \"gpu_us\": {:.2f}, \"nccl_us\": {:.2f}, "
        "\"of_nccl\": {:.3f}, \"alone_us\": {:.2f}, \"nccl_alone_us\": {:.2f}, \"host_us\": "
        "{:.2f}, "
        "\"nccl_host_us\": {:.2f}}}\n",
        kind.name, bytes, ranks, ours_us, raw_us, raw_us / ours_us, alone_us, raw_alone_us, host_us,
        host_raw_us);
    std::fflush(stdout);
  }

 private:
  static constexpr int kManyPosts = 9;

  host::Tensor tensorOf(const TensorDesc& desc) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(desc.allocBytes(), 1))),
          "cudaMalloc");
    check(cudaMemset(memory, 0, static_cast<size_t>(desc.allocBytes())), "cudaMemset");
    return {memory, desc, std::shared_ptr<void>(memory, [](void* p) { cudaFree(p); })};
  }

  // Returns the median GPU times of `ours` and of plain NCCL in microseconds, measured alternately.
  // The time of the slowest rank counts.
  std::pair<double, double> gpuPair(const std::function<void()>& ours,
                                    const std::function<void()>& raw, int64_t bytes) {
    const int runs = bytes > (64 << 20) ? 10 : 40;
    std::vector<double> a, b;
    for (int i = 0; i < runs + 5; ++i) {
      const double ours_us = gpuUs(ours), raw_us = gpuUs(raw);
      if (i < 5) continue;  // the first rounds plan and connect
      a.push_back(ours_us);
      b.push_back(raw_us);
    }
    return {slowest(bench::median(a)), slowest(bench::median(b))};
  }

  double gpuUs(const std::function<void()>& work) {
    world_->barrier();
    return 1e3 * timer_->ms(work);
  }

  // Returns the median host time to issue the work, in microseconds. The GPU is idle before each
  // measurement. The time of the slowest rank counts.
  double hostUs(const std::function<void()>& work) {
    const double ns = bench::medianOf(50, 0, [&] {
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      world_->barrier();
      return bench::hostNs(work);
    });
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return slowest(1e-3 * ns);
  }

  double slowest(double mine) {
    double worst = 0;
    for (const std::string& each : world_->exchange(std::to_string(mine))) {
      worst = std::max(worst, std::stod(each));
    }
    return worst;
  }

  std::unique_ptr<comm::World> world_;
  std::unique_ptr<host::Device> device_;
  ncclComm_t raw_ = nullptr;  // exists until the process ends
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<bench::GpuTimer> timer_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string why;
  const int gpus = host::cudaDeviceCount(why);
  if (gpus < 2) {
    std::fprintf(stderr, "bench_cuda_collectives: needs at least two GPUs, found %d %s\n", gpus,
                 why.c_str());
    return 77;
  }
  std::vector<int64_t> sizes = {16 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30};
  if (argc > 1) sizes.clear();
  for (int i = 1; i < argc; ++i) sizes.push_back(std::stoll(argv[i]));
  auto worlds = comm::makeInProcessWorlds(gpus);
  std::vector<std::thread> threads;
  for (auto& world : worlds) {
    threads.emplace_back([&, own = std::move(world)]() mutable {
      try {
        Rank rank(std::move(own));
        for (const Kind& kind : kinds()) {
          for (int64_t bytes : sizes) rank.run(kind, bytes);
        }
      } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_cuda_collectives: %s\n", error.what());
        std::_Exit(1);  // ends the other ranks too, which wait for this rank
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
