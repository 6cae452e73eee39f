// Shows heddle inside an MPI program that initializes MPI and also makes MPI calls of its own. Each
// rank holds some columns of the weight w1 and some rows of the weight w2. heddle computes
// relu(x w1) w2 for an input x, which includes a sum over the ranks. The program computes the same
// with loops and its own allreduce, and compares the results.
//
//   mpirun -n 4 build/release/bin/mpi_job
//
// heddle calls MPI from its own thread, so the program requests MPI_THREAD_MULTIPLE. heddle
// finalizes MPI only if heddle has initialized MPI.
#include <heddle/heddle.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using namespace heddle;

constexpr int64_t kTokens = 32;
constexpr int64_t kHidden = 48;
constexpr int64_t kFeaturesPerRank = 24;

// Builds y = relu(x w1) w2. The features between the two matrix products are sharded over the
// ranks.
Fusion buildFusion(int ranks) {
  FusionBuilder b("mlp");
  const Size tokens = Size::symbol("tokens");
  const Size hidden = Size::symbol("hidden");
  const Size features = Size::symbol("features");
  const heddle::MeshId mesh = b.mesh({"m", {{MeshAxis::X, ranks}}, {}});
  const auto place = [&](ValueId value, std::vector<std::vector<MeshAxis>> axes) {
    Sharding sharding;
    sharding.mesh = mesh;
    sharding.axes = std::move(axes);
    b.shard(value, std::move(sharding));
    return value;
  };
  const ValueId x = place(b.input("x", DType::F32, {tokens, hidden}), {{}, {}});
  const ValueId w1 = place(b.input("w1", DType::F32, {hidden, features}), {{}, {MeshAxis::X}});
  const ValueId w2 = place(b.input("w2", DType::F32, {features, hidden}), {{MeshAxis::X}, {}});
  const ValueId a = b.pointwise("relu", {b.matmul(x, w1)});
  b.output(place(b.name("y").matmul(a, w2), {{}, {}}));
  return std::move(b).build();
}

// Returns an element of the unsharded tensor `which`. Every rank can compute it, so no rank sends
// weights.
float element(int which, int64_t row, int64_t column) {
  return static_cast<float>(std::sin(0.37 * which + 0.11 * static_cast<double>(row) +
                                     0.23 * static_cast<double>(column)));
}

// Returns the rows and columns [row, row + rows) x [column, column + columns) of tensor `which`.
HostTensor block(int which, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  HostTensor tensor(DType::F32, {rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      tensor.as<float>()[i * columns + j] = element(which, row + i, column + j);
    }
  }
  return tensor;
}

// Returns the expected result: computes this rank's part with loops, and sums the parts with the
// program's own allreduce.
std::vector<double> expected(const HostTensor& x, const HostTensor& w1, const HostTensor& w2) {
  std::vector<double> y(static_cast<size_t>(kTokens * kHidden), 0.0);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t f = 0; f < kFeaturesPerRank; ++f) {
      double a = 0;
      for (int64_t h = 0; h < kHidden; ++h) {
        a += toDouble(x.at(t * kHidden + h)) * toDouble(w1.at(h * kFeaturesPerRank + f));
      }
      a = std::max(a, 0.0);
      for (int64_t h = 0; h < kHidden; ++h) {
        y[static_cast<size_t>(t * kHidden + h)] += a * toDouble(w2.at(f * kHidden + h));
      }
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, y.data(), static_cast<int>(y.size()), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  return y;
}

double largestError(const HostTensor& got, const std::vector<double>& want) {
  double error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double off = std::fabs(toDouble(got.at(static_cast<int64_t>(i))) - want[i]);
    if (std::isnan(off) || off > error) error = off;
    if (std::isnan(error)) break;
  }
  return error;
}

double runOn(host::Device& device, comm::World& world) {
  const int64_t first = world.rank() * kFeaturesPerRank;
  const HostTensor x = block(0, 0, kTokens, 0, kHidden);
  const HostTensor w1 = block(1, 0, kHidden, first, kFeaturesPerRank);
  const HostTensor w2 = block(2, first, kFeaturesPerRank, 0, kHidden);
  const std::vector<double> want = expected(x, w1, w2);

  const int64_t features = kFeaturesPerRank * world.size();
  const auto place = [&](const HostTensor& local, std::vector<int64_t> whole,
                         std::vector<int64_t> offset) {
    TensorDesc desc = denseDesc(DType::F32, local.sizes);
    desc.global = std::move(whole);  // says that the tensor is a block of a larger tensor
    desc.offset = std::move(offset);
    return host::toDevice(device, device.allocator(), local, desc);
  };
  const std::vector<host::Argument> arguments = {place(x, {kTokens, kHidden}, {0, 0}),
                                                 place(w1, {kHidden, features}, {0, first}),
                                                 place(w2, {features, kHidden}, {first, 0})};
  host::FusionExecutor executor(buildFusion(world.size()), {&device, &world, nullptr});
  double error = 0;
  for (int run = 0; run < 3; ++run) {
    const host::Outputs outputs = executor.run(arguments);
    // The program may use MPI while heddle runs.
    MPI_Barrier(MPI_COMM_WORLD);
    outputs.wait();
    const HostTensor y = host::toHost(device, std::get<host::Tensor>(outputs[0]));
    const double off = largestError(y, want);
    if (std::isnan(off)) return off;
    error = std::max(error, off);
  }
  return error;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "mpi_job: this MPI does not support MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  double error = 0;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    // Use one GPU per rank if there are enough GPUs, otherwise the CPU.
    std::string why;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int use_gpu = host::cudaDeviceCount(why) >= ranks ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &use_gpu, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    const auto device = use_gpu ? host::makeCudaDevice(rank) : host::makeCpuDevice();
    const auto world = host::makeJobWorld(device->kind(), rank);
    try {
      error = runOn(*device, *world);
    } catch (const std::exception& e) {
      world->fail(e.what());  // the other ranks then report the reason too
      throw;
    }
    if (rank == 0) {
      std::printf("%d ranks, %s: largest error %.2g\n", ranks, device->description().c_str(),
                  error);
    }
  } catch (const std::exception& e) {
    // End a failed job with MPI_Abort. MPI_Finalize would wait for the other ranks, but these may
    // wait for this rank in their own MPI calls. If runOn() has failed, World::fail() has notified
    // the other ranks, so their run() or wait() throws. The other ranks print their errors during
    // the second before MPI_Abort.
    std::fprintf(stderr, "mpi_job: rank %d: %s\n", rank, e.what());
    std::this_thread::sleep_for(std::chrono::seconds(1));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // The program owns MPI and can still use it after the objects of heddle are destroyed.
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return error < 1e-3 ? 0 : 1;
}
