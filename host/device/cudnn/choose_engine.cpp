#include "host/device/cudnn/choose_engine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "comm/cuda_call/gpu_timing.h"
#include "host/device/choice_cache.h"
#include "host/device/cudnn/attention_graphs.h"
#include "host/device/cudnn/attention_questions.h"
#include "host/device/cudnn/cudnn_handle.h"
#include "host/device/timed_choice.h"
#include "ir/base/check.h"

namespace heddle::host::cudnn {
namespace {

using comm::EventPair;
using comm::TimerMemory;

// Returns the stored choices of a device. All threads share them.
ChoiceCache& choicesOf(int device) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<ChoiceCache>> caches;
  const std::lock_guard lock(mutex);
  std::unique_ptr<ChoiceCache>& cache = caches[device];
  if (cache == nullptr) {
    cudaDeviceProp properties{};
    HEDDLE_CUDA(cudaGetDeviceProperties, &properties, device);
    cache = std::make_unique<ChoiceCache>(
        codegen::ImageCache::defaultFolder(),
        fmt::format("{} sm_{}{}, cuDNN {}, timing {}", properties.name, properties.major,
                    properties.minor, cudnnGetVersion(), kTimedChoice));
  }
  return *cache;
}

// Fills the memory of a tensor of f16 or bf16 with numbers of both signs from 0.5 to 1. With zeros,
// the GPU would draw less power and run at a higher clock than with real data.
void fillRandomly(void* memory, int64_t bytes, DType dtype, cudaStream_t stream) {
  constexpr int64_t kRandomBytes = 1 << 20;  // later bytes repeat the first ones
  const uint32_t mantissa = dtype == DType::BF16 ? 0x807F : 0x83FF;
  const uint32_t exponent = dtype == DType::BF16 ? 0x3F00 : 0x3800;
  std::minstd_rand random(1);
  std::vector<uint16_t> values(static_cast<size_t>(std::min(bytes, kRandomBytes)) / 2);
  for (uint16_t& each : values) {
    each = static_cast<uint16_t>(((random() >> 8) & mantissa) | exponent);
  }
  auto* const first = static_cast<std::byte*>(memory);
  int64_t done = static_cast<int64_t>(2 * values.size());
  HEDDLE_CUDA(cudaMemcpyAsync, first, values.data(), static_cast<size_t>(done),
              cudaMemcpyHostToDevice, stream);
  for (int64_t size = 0; done < bytes; done += size) {
    size = std::min(done, bytes - done);
    HEDDLE_CUDA(cudaMemcpyAsync, first + done, first, static_cast<size_t>(size),
                cudaMemcpyDeviceToDevice, stream);
  }
  HEDDLE_CUDA(cudaStreamSynchronize, stream);  // `values` must outlive the copy
}

void runGraph(const ForwardGraph& graph, cudnnHandle_t handle, const std::vector<void*>& at,
              void* log_sums, void* workspace) {
  graph.run(handle, {at[0], at[1], at[2], at[3], log_sums}, workspace);
}

void runGraph(const BackwardGraph& graph, cudnnHandle_t handle, const std::vector<void*>& at,
              void* log_sums, void* workspace) {
  graph.run(handle, {at[0], at[1], at[2], at[3], at[4], log_sums, at[5], at[6], at[7]}, workspace);
}

// Runs and measures the built graphs of one attention on operands of its own. The graphs differ
// only in their engine configurations.
template <class Graph>
class EngineStopwatch : public AlgorithmStopwatch {
 public:
  // `fills`: the operands get random values. Otherwise their memory is not initialized.
  template <class Spec>
  EngineStopwatch(const Spec& spec, const std::vector<std::unique_ptr<Graph>>& graphs,
                  cudnnHandle_t handle, cudaStream_t stream, bool fills)
      : graphs_(graphs), handle_(handle), stream_(stream) {
    int64_t workspace_bytes = 0;
    for (const auto& each : graphs) {
      workspace_bytes = std::max(workspace_bytes, each->workspaceBytes());
    }
    const std::vector<TensorDesc> operands = operandsOf(spec);
    for (const TensorDesc& desc : operands) at_.push_back(allocate(spanBytes(desc)));
    const int64_t log_bytes = graphs[0]->rowCount() * static_cast<int64_t>(sizeof(float));
    log_sums_ = allocate(log_bytes);
    workspace_ = allocate(workspace_bytes);
    if (failed_ || !fills) return;
    for (size_t i = 0; i < operands.size(); ++i) {
      fillRandomly(at_[i], spanBytes(operands[i]), operands[i].dtype, stream);
    }
    constexpr int kByte = 0x41;  // four such bytes are 12.08, a plausible log-sum
    HEDDLE_CUDA(cudaMemsetAsync, log_sums_, kByte, static_cast<size_t>(log_bytes), stream);
  }
  // Returns whether there was not enough memory. Do not call the functions below then.
  bool failed() const { return failed_; }

  // Runs graph 0 once and waits for it, so that CUDA loads its kernels.
  void load() {
    run(0);
    HEDDLE_CUDA(cudaStreamSynchronize, stream_);
  }
  // The first run loads the kernels, so only the second one is measured.
  double first(size_t graph) override {
    try {
      run(graph);
      return events_.time(stream_, [&] { run(graph); });
    } catch (const UserError& error) {
      if (error.code() == ErrorCode::DeviceLost) throw;
      return std::numeric_limits<double>::infinity();
    }
  }
  double mean(size_t graph, int runs) override {
    run(graph);
    const double ms = events_.time(stream_, [&] {
      for (int i = 0; i < runs; ++i) run(graph);
    });
    return ms / runs;
  }

 private:
  void* allocate(int64_t bytes) {
    memory_.push_back(std::make_unique<TimerMemory>(bytes, stream_));
    failed_ = failed_ || memory_.back()->failed();
    return memory_.back()->get();
  }
  void run(size_t graph) { runGraph(*graphs_[graph], handle_, at_, log_sums_, workspace_); }

  const std::vector<std::unique_ptr<Graph>>& graphs_;
  cudnnHandle_t handle_;
  cudaStream_t stream_;
  std::vector<std::unique_ptr<TimerMemory>> memory_;
  std::vector<void*> at_;
  void* log_sums_ = nullptr;
  void* workspace_ = nullptr;
  bool failed_ = false;
  EventPair events_;
};

// Builds one graph per engine configuration. Leaves out configurations that cuDNN cannot build.
template <class Graph, class Spec>
std::vector<std::unique_ptr<Graph>> graphsWith(const std::vector<std::string>& engines,
                                               const Spec& spec, cudnnHandle_t handle) {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const std::string& engine : engines) {
    auto graph = std::make_unique<Graph>(spec);
    try {
      graph->plan(handle, engine);
    } catch (const UserError&) {
      return {};  // cuDNN can build no configuration at all
    }
    if (graph->engine() == engine) graphs.push_back(std::move(graph));
  }
  return graphs;
}

// Locks the handle, and uses it on `stream`.
template <class Graph>
class EngineChoice {
 public:
  EngineChoice(SharedHandle& handle, cudaStream_t stream)
      : lock_(handle.mutex), handle_(handle.handle), stream_(stream) {
    check(cudnnSetStream(handle_, stream), "cudnnSetStream");
  }

  // Returns whether cuDNN can build this configuration. If it can, runs the graph once, so that
  // CUDA loads its kernels. The run is left out if there is not enough memory.
  template <class Spec>
  bool load(const Spec& spec, const std::string& engine) const {
    const auto graphs = graphsWith<Graph>({engine}, spec, handle_);
    if (graphs.empty()) return false;
    EngineStopwatch<Graph> stopwatch(spec, graphs, handle_, stream_, false);
    if (!stopwatch.failed()) stopwatch.load();
    return true;
  }

  // Returns the fastest configuration, or "" if cuDNN can build none. If there is not enough memory
  // to measure, returns the first one that cuDNN can build, and sets `is_final` to false.
  template <class Spec>
  std::string fastest(const Spec& spec, bool& is_final) const {
    const auto graphs = graphsWith<Graph>(Graph(spec).proposals(handle_), spec, handle_);
    if (graphs.empty()) return {};
    EngineStopwatch<Graph> stopwatch(spec, graphs, handle_, stream_, graphs.size() > 1);
    is_final = !stopwatch.failed();
    if (!is_final) return graphs[0]->engine();
    if (graphs.size() == 1) stopwatch.load();
    // No final: the configurations differ by much, and a job may use many numbers of tokens.
    return graphs[fastestAlgorithm(graphs.size(), stopwatch, true)]->engine();
  }

 private:
  const std::lock_guard<std::mutex> lock_;
  cudnnHandle_t handle_;
  cudaStream_t stream_;
};

// The answers that chooseEngine() has given in this process. CUDA has loaded their kernels.
class LoadedAnswers {
 public:
  bool contains(int device, const std::string& question, const std::string& answer) const {
    const std::lock_guard lock(mutex_);
    return loaded_.contains({device, question, answer});
  }
  void add(int device, const std::string& question, const std::string& answer) {
    const std::lock_guard lock(mutex_);
    loaded_.emplace(device, question, answer);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::tuple<int, std::string, std::string>> loaded_;
};

template <class Graph, class Spec>
std::string answer(const Spec& spec, const std::string& question, const std::string& given,
                   int device, cudaStream_t stream) {
  static LoadedAnswers loaded;
  ChoiceCache& choices = choicesOf(device);
  const std::string stored = choices.find(question).value_or("");
  if (comm::isCapturing(stream)) return given.empty() ? stored : given;
  for (const std::string& known : {given, stored}) {
    if (!known.empty() && loaded.contains(device, question, known)) return known;
    if (known.empty()) continue;
    const comm::TimingStream own(stream);
    if (!EngineChoice<Graph>(*handleOf(device), own.get()).load(spec, known)) continue;
    loaded.add(device, question, known);
    return known;
  }
  const comm::TimingStream own(stream);
  bool is_final = false;
  std::string fastest = EngineChoice<Graph>(*handleOf(device), own.get()).fastest(spec, is_final);
  if (!is_final) return fastest;
  choices.put(question, fastest);
  loaded.add(device, question, fastest);
  return fastest;
}

}  // namespace

std::string chooseEngine(const std::string& question, int device, cudaStream_t stream,
                         const std::string& given) {
  const CurrentDevice current(device);
  const AttentionCallSpec spec = parseQuestion(question);
  const auto* const backward = std::get_if<AttentionBackwardSpec>(&spec);
  return backward != nullptr
             ? answer<BackwardGraph>(*backward, question, given, device, stream)
             : answer<ForwardGraph>(std::get<AttentionSpec>(spec), question, given, device, stream);
}

}  // namespace heddle::host::cudnn
