#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/runtime_text.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/generated.h"
#include "ir/base/check.h"
#include "ir/ops/scalar_functions.h"
#include "tests/codegen/kernel_runner.h"
#include "tests/codegen/simt/grid.h"

namespace heddle::codegen::testing {

// Compiles generated CUDA kernels for the host, and runs their threads as fibers
// (tests/codegen/simt/grid.h). One run of the compiler compiles all kernels. Use: add() every
// kernel, then compile() once, then run().
class SimtKernels {
 public:
  // Plans a kernel, with `choice` unless it is nullptr. Returns the number of the kernel. The
  // buffers must live until the last run().
  size_t add(const Fusion& segment, const std::vector<Buffer*>& inputs,
             const std::vector<Buffer*>& outputs, std::vector<Scalar> scalars = {},
             const KernelChoice* choice = nullptr) {
    Case one;
    std::vector<TensorDesc> in;
    std::vector<TensorDesc> out;
    std::vector<int32_t> alignments;
    for (Buffer* b : inputs) {
      in.push_back(b == nullptr ? TensorDesc{} : b->desc);
      one.buffers.push_back(b);
      alignments.push_back(b == nullptr ? kFullAlignment : b->alignment());
    }
    for (Buffer* b : outputs) {
      out.push_back(b->desc);
      one.buffers.push_back(b);
      alignments.push_back(b->alignment());
    }
    one.plan = planKernel(segment, in, out, Target::Cuda, alignments,
                          unshardedSizes(segment, in, out), nullptr, nullptr, choice);
    one.scalars = std::move(scalars);
    cases_.push_back(std::move(one));
    return cases_.size() - 1;
  }

  size_t size() const { return cases_.size(); }
  const KernelPlan& plan(size_t number) const { return cases_[number].plan; }

  void compile() {
    std::ofstream(folder_.path() + "/kernels.cpp") << source();
    // - The text reads neighbouring elements as one word, so a misaligned address must end the
    // test.
    // - The shared memory of an inline function is a static variable. Without -fno-gnu-unique, all
    //   libraries of the process would share the variables of functions with equal names.
    compiler({"-std=c++17", "-O1", "-w", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off",
              "-fno-gnu-unique", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error", "-c",
              "kernels.cpp"},
             std::getenv("HEDDLE_COMPILER_LAUNCHER"));
    compiler({"-shared", "-o", "kernels.so", "kernels.o"});
    library_ = dlopen((folder_.path() + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    HEDDLE_CHECK(library_ != nullptr, "{}", dlerror());
    static const Host host = {
        [] { return static_cast<int>(simt::grid().thread()); },
        [] { return static_cast<int>(simt::grid().threads()); },
        [] { return static_cast<long long>(simt::grid().block()); },
        [] { return static_cast<long long>(simt::grid().blocks()); },
        [] { return simt::grid().row(); },
        [] { return simt::grid().rows(); },
        [] { return static_cast<unsigned long long>(simt::grid().serial()); },
        [] { return run_.shared_bytes; },
        [] { return run_.cluster; },
        [] { return passed(); },
        [](int number) {
          if (number == run_.skipped) return skip();
          simt::grid().barrier();
          ++passed();
        },
        [](int number, const unsigned long long* slot, int words) {
          if (number == run_.skipped) return;
          const auto is_published = [](unsigned long long word) { return word >> 32 == 1; };
          simt::grid().await([&] { return std::all_of(slot, slot + words, is_published); });
        },
        [](int number) {
          if (number == run_.skipped) return skip();
          awaitCluster();
        },
        [](void* memory, unsigned long long bytes) { run_.shared[memory] = bytes; },
        [](unsigned long long value, int from) { return simt::grid().exchange(value, from); },
        fail,
        [](double x) { return op_functions::erfinv(x); }};
    *symbol<const Host*>("simt_host") = &host;
  }

  // Runs a kernel. Returns a text about the first fault, or "". A fault is a misuse of shared
  // memory, or threads that wait for each other forever. Threads do not wait at the barrier with
  // the number `skipped`. If blocks of a launch wait for each other, the launch has at most
  // `at_once` blocks, which run at the same time. The blocks of a cluster run at the same time.
  std::string run(size_t number, uint64_t seed, int skipped = -1, int at_once = 3) {
    const Case& one = cases_[number];
    std::vector<char> workspace(static_cast<size_t>(one.plan.workspace_bytes) + 16, '\x7f');
    std::vector<unsigned> counters(LaunchStage::kCounterBytes / sizeof(unsigned), 0);
    run_ = {skipped, {}, {}, 0, 0, 1, {}, {}, {}};
    *symbol<int>("simt_sent") = 0;
    for (LaunchStage stage : one.plan.stages) {
      const bool waits = stage.cleared_bytes > 0;
      run_.cluster = clusterOf(one.plan.source.text);
      run_.arrived.clear();
      const int places = waits ? at_once : run_.cluster;
      if (waits) stage.grid = std::min<int64_t>(stage.grid, at_once);
      std::fill_n(workspace.begin(), stage.cleared_bytes, '\0');
      for (const LaunchStage::PointerPatch& p : stage.pointers) {
        void* pointer = p.operand == LaunchStage::kCounters ? counters.data()
                        : p.operand == LaunchStage::kWorkspace
                            ? workspace.data() + p.workspace_offset
                            : one.buffers.at(static_cast<size_t>(p.operand))->data();
        std::memcpy(stage.args.data() + p.offset, &pointer, sizeof(pointer));
      }
      for (const LaunchStage::ScalarPatch& s : stage.scalars) {
        storeElement(stage.args.data() + s.offset, s.dtype, 0,
                     one.scalars.at(static_cast<size_t>(s.operand)));
      }
      run_.shared_bytes = stage.shared_bytes;
      run_.passed.assign(static_cast<size_t>(stage.block * places), 0);
      auto* entry = symbol<void(const void*)>(entryName(number, stage.entry));
      try {
        simt::grid().run(
            stage.grid, stage.block, seed, [&] { entry(stage.args.data()); }, stage.grid_y, places,
            exchangeShared);
      } catch (const simt::Stuck& stuck) {
        return run_.fault.empty() ? stuck.what() : run_.fault;
      }
      const bool are_zero =
          std::all_of(counters.begin(), counters.end(), [](unsigned count) { return count == 0; });
      if (!are_zero && run_.fault.empty()) run_.fault = "the launch leaves counters that are not 0";
    }
    return run_.fault;
  }

  // Returns the numbers of the barriers of a kernel: from `first` to `second` - 1.
  std::pair<int, int> barriers(size_t number) const {
    const int* bounds = symbol<const int>(fmt::format("barriers_{}", number));
    return {bounds[0] + 1, bounds[1]};
  }

 private:
  struct Case {
    KernelPlan plan;
    std::vector<Buffer*> buffers;
    std::vector<Scalar> scalars;
  };
  // The same struct as SimtHost in tests/codegen/simt/simt_device.h.
  struct Host {
    int (*thread)();
    int (*threads)();
    long long (*block)();
    long long (*blocks)();
    int (*row)();
    int (*rows)();
    unsigned long long (*serial)();
    int (*shared_bytes)();
    int (*cluster_blocks)();
    long long (*barriers)();
    void (*barrier)(int number);
    void (*await)(int number, const unsigned long long* slot, int words);
    void (*cluster)(int number);
    void (*own)(void* memory, unsigned long long bytes);
    unsigned long long (*exchange)(unsigned long long value, int from);
    void (*fault)(const char* text);
    double (*erfinv)(double x);
  };
  struct Run {
    int skipped;                    // number of the barrier to leave out; -1: none
    std::vector<long long> passed;  // per running thread: the barriers that it has passed
    std::string fault;
    int shared_bytes;  // of the launch
    int skips;         // how often a thread has left out the barrier `skipped`
    int cluster;       // number of blocks of a cluster
    std::map<std::pair<unsigned, long long>, unsigned> arrived;   // awaitCluster(): arrivals
    std::map<void*, size_t> shared;                               // the shared memory of a block
    std::map<std::pair<int, void*>, std::vector<char>> contents;  // by place and memory
  };

  // Returns the number of blocks of a cluster.
  static int clusterOf(const std::string& text) {
    const std::string attribute = "__cluster_dims__(";
    const size_t at = text.find(attribute);
    return at == std::string::npos ? 1 : std::atoi(text.c_str() + at + attribute.size());
  }

  static void fail(const char* text) {
    run_.fault = text;
    simt::grid().fail();
  }
  // Counts how often the skipped barrier was left out. Ends the run after kMost times, because a
  // thread may repeat a loop forever without the barrier.
  static void skip() {
    constexpr int kMost = 10000;
    if (++run_.skips > kMost) fail("a thread repeats a loop too often");
  }
  // Waits until all threads of the cluster have called the function equally often.
  static void awaitCluster() {
    simt::Grid& grid = simt::grid();
    grid.barrier();
    ++passed();
    const auto blocks = static_cast<unsigned>(run_.cluster);
    unsigned& arrived = run_.arrived[{grid.block() / blocks, passed()}];
    ++arrived;
    grid.await([&] { return arrived == blocks * grid.threads(); });
  }
  static long long& passed() {
    const simt::Grid& grid = simt::grid();
    return run_.passed[static_cast<size_t>(grid.place()) * grid.threads() + grid.thread()];
  }
  // Saves the shared memory of the block at place `from`, and restores the shared memory of the
  // block at place `to`. Grid calls this function.
  static void exchangeShared(int from, int to) {
    for (const auto& [memory, bytes] : run_.shared) {
      std::vector<char>& kept = run_.contents[{from, memory}];
      kept.resize(bytes);
      std::memcpy(kept.data(), memory, bytes);
      const auto found = run_.contents.find({to, memory});
      if (found != run_.contents.end()) std::memcpy(memory, found->second.data(), bytes);
    }
  }

  // Runs the C++ compiler in the folder of the kernels. `launcher` is a program such as ccache,
  // which runs the compiler or finds an earlier result. File names are relative, so ccache also
  // finds results from other folders.
  void compiler(const std::vector<std::string>& options, const char* launcher = nullptr) const {
    std::vector<std::string> command = {"env", "-C", folder_.path()};
    if (launcher != nullptr) command.emplace_back(launcher);
    const char* chosen = std::getenv("CXX");
    command.emplace_back(chosen == nullptr ? "c++" : chosen);
    command.insert(command.end(), options.begin(), options.end());
    const ProcessResult result = runProcess(command);
    HEDDLE_CHECK(result.exit_code == 0, "{}", result.output);
  }

  static std::string entryName(size_t number, const std::string& entry) {
    return fmt::format("run_{}_{}", number, entry);
  }

  // Each kernel has its own namespace, because kernels of different segments have equal names.
  std::string source() const {
    const char* root = std::getenv("HEDDLE_SOURCE_DIR");
    std::ostringstream text;
    text << std::ifstream(std::string(root == nullptr ? "." : root) +
                          "/tests/codegen/simt/simt_device.h")
                .rdbuf();
    text << kRuntimeHeader_cuda_runtime << kRuntimeHeader_cuda_lanes << kRuntimeHeader_cuda_memory
         << kRuntimeHeader_cuda_math << kRuntimeHeader_cuda_joint;
    text << "template <class Args> void simtCall(void (*kernel)(Args), const void* args) {\n"
            "  kernel(*(const Args*)args);\n}\n";
    for (size_t i = 0; i < cases_.size(); ++i) {
      const KernelSource& kernel = cases_[i].plan.source;
      std::string body = kernel.text;
      const std::string linkage = "extern \"C\" ";
      for (size_t at; (at = body.find(linkage)) != std::string::npos;) {
        body.erase(at, linkage.size());
      }
      text << fmt::format("namespace case_{} {{\nconst int first = __COUNTER__;\n{}\n", i, body);
      text << fmt::format("extern \"C\" const int barriers_{}[2] = {{first, __COUNTER__}};\n", i);
      for (const std::string& entry : kernel.entries) {
        text << fmt::format("extern \"C\" void {}(const void* args) {{ simtCall({}, args); }}\n",
                            entryName(i, entry), entry);
      }
      text << "}\n";
    }
    return text.str();
  }

  template <class T>
  T* symbol(const std::string& name) const {
    void* found = dlsym(library_, name.c_str());
    HEDDLE_CHECK(found != nullptr, "dlsym: {}", dlerror());
    return reinterpret_cast<T*>(found);
  }

  static inline thread_local Run run_{-1, {}, {}, 0, 0, 1, {}, {}, {}};
  TempFolder folder_;
  std::vector<Case> cases_;
  void* library_ = nullptr;
};

}  // namespace heddle::codegen::testing
