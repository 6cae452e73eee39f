// Shows how to build a host program in C++ and how to test it without a GPU, as a unit test would.
//
// The program runs on two ranks. Each rank holds some rows of x. By gradient descent, the program
// moves w towards the mean of all rows:
//   repeat 3 times:
//     part  = sum over the rows of this rank of (x - w)     kernel gradient
//     total = sum of part over all ranks                    allreduce on stream 1
//     w     = w + rate * total                              kernel step, in place
//
// The tests:
//   1. Print the program, and verify it: types, races, matching collectives.
//   2. Check that verify() finds a missing wait.
//   3. Run the program on the null device, which counts calls and computes nothing.
//   4. Run the program on the CPU and check the numbers, also in a mode that shows missing
//      synchronization.
#include <heddle/heddle.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace heddle;

constexpr int kRanks = 2;
constexpr int64_t kRows = 4;  // of all ranks together
constexpr int64_t kColumns = 3;
constexpr int64_t kSteps = 3;

DeviceMesh jobMesh() { return {"m", {{MeshAxis::X, DeviceMesh::kFromJob}}, {}}; }

// --- kernels -------------------------------------------------------------------------------------
// The code of a kernel is generated from a fusion.

// Sums x - w over the rows that a rank holds. The result is this rank's part of the sum over all
// rows.
Fusion gradientKernel() {
  FusionBuilder b("gradient");
  const MeshId m = b.mesh(jobMesh());
  const ValueId x = b.input("x", DType::F32, {"rows", "columns"});
  const ValueId w = b.input("w", DType::F32, {"columns"});
  b.shard(x, {m, {{MeshAxis::X}, {}}, {}, {}});
  b.shard(w, {m, {{}}, {}, {}});
  const ValueId differences = b.pointwise("sub", {x, w});
  const ValueId part = b.name("part").reduce("sum", differences, {0});
  b.shard(part, {m, {{}}, {{MeshAxis::X, ReduceOp::Sum}}, {}});
  b.output(part);
  return std::move(b).build();
}

Fusion stepKernel() {
  FusionBuilder b("step");
  const ValueId w = b.input("w", DType::F32, {"columns"});
  const ValueId total = b.input("total", DType::F32, {"columns"});
  const ValueId rate = b.scalarInput("rate", DType::F64);
  const ValueId change = b.pointwise("mul", {total, rate});
  b.output(b.name("new_w").pointwise("add", {w, change}));
  return std::move(b).build();
}

// --- the program ---------------------------------------------------------------------------------

// Without `with_wait`, the kernel `step` may read the total before the allreduce has written it.
host::Program buildProgram(bool with_wait = true) {
  host::ProgramBuilder b("mean");
  const host::StreamId communication(1);

  // Declarations. Each size symbol gets its value from the inputs of a run.
  const host::MeshRef m = b.mesh(jobMesh());
  const host::KernelRef gradient = b.kernel("gradient", gradientKernel());
  const host::KernelRef step = b.kernel("step", stepKernel());
  const host::TensorType row{DType::F32, {"columns"}, b.shard(m, {})};
  const host::TensorType partial_row{
      DType::F32, {"columns"}, b.shard(m, {}, {{MeshAxis::X, ReduceOp::Sum}})};
  const host::SlotRef x =
      b.input("x", {DType::F32, {"rows", "columns"}, b.shard(m, {{MeshAxis::X}})});
  const host::SlotRef start = b.input("start", row);
  const host::SlotRef rate = b.scalarInput("rate", DType::F64, 0.125);

  // Instructions, in the order of their execution.
  const host::SlotRef w = b.allocate(b.tensor("w", row));
  const host::SlotRef part = b.allocate(b.tensor("part", partial_row));
  const host::SlotRef total = b.allocate(b.tensor("total", row));
  b.copy(start, w);
  b.loop(kSteps, [&](host::Index) {
    b.launch(gradient, {x, w}, {part});
    const host::EventRef computed = b.recordEvent();
    b.waitEvent(computed, communication);
    const host::TokenRef sum =
        b.communicate(comm::CollectiveKind::Allreduce, part, total,
                      {.team = b.team(m), .op = ReduceOp::Sum, .stream = communication});
    if (with_wait) b.wait(sum);  // on the stream of the caller, before `step` reads the total
    b.launch(step, {w, total, rate}, {w});
  });
  b.free(part);
  b.free(total);
  b.output(w);
  return std::move(b).build();
}

// --- helpers of the tests ------------------------------------------------------------------------

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
  std::printf("ok: %s\n", what.c_str());
}

// Calls body(world) on one thread per rank. Throws the error of the lowest rank that failed.
template <class Body>
void onRanks(host::DeviceKind kind, const Body& body) {
  const auto worlds = host::makeInProcessWorldsFor(kind, kRanks);
  std::vector<std::exception_ptr> errors(kRanks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*worlds[rank]);
      } catch (const std::exception& error) {
        errors[rank] = std::current_exception();
        worlds[rank]->fail(error.what());  // the other rank stops waiting for this rank
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Returns the part of x[r, c] = 4 * r + c that this rank holds.
HostTensor rowsOf(int rank) {
  const int64_t rows = kRows / kRanks;
  HostTensor x(DType::F32, {rows, kColumns});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.set(i, static_cast<double>(4 * (rank * rows + i / kColumns) + i % kColumns));
  }
  return x;
}

// Runs the program once on one rank, and returns w.
HostTensor runOnRank(host::Device& device, comm::World& world) {
  const host::Program program = buildProgram();
  host::Executable executable(program, {&device, &world});
  const SizeBindings sizes = {{"rows", kRows}, {"columns", kColumns}};
  // inputDescs() says which block of each input the rank holds.
  const auto descs = host::inputDescs(program, sizes, world.rank(), world.size());
  const HostTensor start(DType::F32, {kColumns});  // zeros
  const std::vector<host::Argument> arguments = {
      host::toDevice(device, device.allocator(), rowsOf(world.rank()), descs[0]),
      host::toDevice(device, device.allocator(), start, descs[1]), Scalar(0.125)};
  const host::Outputs outputs = executable.run(arguments);
  outputs.wait();
  HostTensor w = host::toHost(device, outputs.tensor("w"));
  world.barrier();  // the device must exist until the other rank has finished its run
  return w;
}

// --- tests ---------------------------------------------------------------------------------------

void testVerify() {
  const host::Program program = buildProgram();
  std::printf("%s\n", host::print(program).c_str());
  host::verify(program, {.ranks = kRanks});
  expect(true, "the program is legal");
}

void testMissingWait() {
  std::string message;
  try {
    host::verify(buildProgram(false), {.ranks = kRanks});
  } catch (const UserError& error) {
    message = error.what();
  }
  std::printf("%s\n", message.c_str());
  expect(message.find("accesses %total, which is borrowed by") != std::string::npos,
         "verify() reports the missing wait");
}

void testOnNullDevice() {
  const auto counts = std::make_shared<host::NullCounts>();
  onRanks(host::DeviceKind::Null, [&](comm::World& world) {
    const auto device = host::makeNullDevice(counts);
    runOnRank(*device, world);
  });
  expect(counts->launch == kRanks * kSteps * 2, "each step launches two kernels");
  expect(counts->communicate == kRanks * kSteps, "each step posts one collective");
}

// With CpuOptions::adversarial_seed, the device delays work as long as the program allows, and
// fills new memory with NaN. Missing synchronization then probably gives wrong numbers.
void testOnCpu() {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    onRanks(host::DeviceKind::Cpu, [&](comm::World& world) {
      host::CpuOptions options;
      options.threads = 1;
      if (seed > 0) options.adversarial_seed = seed;
      const auto device = host::makeCpuDevice(options);
      const HostTensor w = runOnRank(*device, world);
      for (int64_t c = 0; c < kColumns; ++c) {
        // The rows have the mean 6 + c. Each step halves the distance from the mean.
        const double expected = static_cast<double>(6 + c) * (1 - 1.0 / 8);
        if (toDouble(w.at(c)) != expected) throw std::runtime_error("w is wrong on the CPU");
      }
    });
  }
  expect(true, "w approaches the mean of all rows");
}

}  // namespace

int main() {
  try {
    testVerify();
    testMissingWait();
    testOnNullDevice();
    testOnCpu();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_program: %s\n", error.what());
    return 1;
  }
}
