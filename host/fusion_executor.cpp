#include "host/fusion_executor.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "host/executable_impl.h"
#include "host/inspect.h"
#include "host/plan/bind_inputs.h"
#include "host/program_cache.h"
#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::host {
namespace {

// Gives an aligned address to each tensor in device memory that has no data, so that a plan can be
// created for it.
std::vector<Argument> withAddresses(std::vector<Argument> shapes) {
  alignas(256) static std::byte nowhere[256];
  for (Argument& shape : shapes) {
    auto* tensor = std::get_if<Tensor>(&shape);
    if (tensor != nullptr && tensor->data == nullptr && !tensor->in_host_memory) {
      tensor->data = nowhere;
    }
  }
  return shapes;
}

RunOptions withAddresses(RunOptions options) {
  std::vector<Argument> tensors(options.preallocated.begin(), options.preallocated.end());
  tensors = withAddresses(std::move(tensors));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = std::get<Tensor>(tensors[i]);
    if (tensor.desc.rank() > 0) options.preallocated[i] = tensor;  // otherwise it is ignored
  }
  return options;
}

}  // namespace

struct FusionExecutor::Impl {
  // The program and the plan that a run uses. `plan` is nullptr until the plan has been found or
  // created.
  struct Target {
    ProgramCache::EntryPtr entry;
    std::shared_ptr<const Plan> plan;
    Executable::Impl& executable() const { return *entry->executable->impl_; }
  };
  using TargetPtr = std::shared_ptr<const Target>;

  Impl(Fusion fusion, const Context& context, const CompileOptions& options)
      : programs(std::move(fusion), context, options),
        known(programs.sizeInputs(), {options.caches.plans, options.caches.plan_bytes}) {}

  Outputs run(const std::vector<Argument>& inputs, const RunOptions& run_options) {
    if (const TargetPtr found = knownTarget(inputs, run_options)) {
      return found->executable().run(inputs, run_options, found->plan);
    }
    Target target{programs.find(inputs), nullptr};
    Outputs outputs = target.executable().run(inputs, run_options, nullptr, &target.plan);
    remember(inputs, run_options, std::move(target));
    return outputs;
  }

  // Returns the target of an earlier run with equal tensors and sizes, or nullptr.
  TargetPtr knownTarget(const std::vector<Argument>& inputs, const RunOptions& run_options) {
    std::lock_guard lock(mutex);
    const TargetPtr* found = known.find(tensorsOf(inputs, run_options));
    if (found == nullptr || (*found)->entry->dropped.load(std::memory_order_relaxed)) {
      return nullptr;
    }
    programs.use(*(*found)->entry);
    ++plan_hits;
    return *found;
  }

  // Finds or creates the program and the plan.
  TargetPtr prepare(const std::vector<Argument>& inputs, const RunOptions& run_options) {
    if (TargetPtr found = knownTarget(inputs, run_options)) return found;
    Target target{programs.find(inputs), nullptr};
    target.plan = target.executable().prepare(inputs, run_options);
    return remember(inputs, run_options, std::move(target));
  }

  // Finds or creates the program for these shapes. Throws the UserError of run() if they do not
  // fit.
  ProgramCache::EntryPtr entryFor(const std::vector<Argument>& shapes) {
    ProgramCache::EntryPtr entry = programs.find(shapes);
    const Executable::Impl& executable = *entry->executable->impl_;
    bindInputs(executable.inlined, InputFacts(executable.inlined), shapes, executable.rank,
               executable.ranks);
    return entry;
  }

  bool isPrepared(const std::vector<Argument>& shapes, const RunOptions& run_options) {
    try {
      {
        std::lock_guard lock(mutex);
        const TargetPtr* found = known.peek(tensorsOf(shapes, run_options));
        if (found != nullptr && !(*found)->entry->dropped.load()) return true;
      }
      // The plan may exist although the table of all plans has dropped it.
      const ProgramCache::EntryPtr entry = programs.peek(shapes);
      return entry && entry->executable->impl_->hasPlan(shapes, run_options);
    } catch (const UserError&) {
      return false;  // run() would throw this error
    }
  }

  // Adds the target to the table of all plans, if the cache still has the program.
  TargetPtr remember(const std::vector<Argument>& inputs, const RunOptions& run_options,
                     Target target) {
    auto kept = std::make_shared<const Target>(std::move(target));
    // Destroyed after the lock has been released, because the destructors may wait for runs.
    std::vector<TargetPtr> dropped;
    std::lock_guard lock(mutex);
    // Another thread may have added the plan, and may have dropped the program.
    if (const int64_t now = programs.evictions(); now != evictions) {
      known.eraseIf([](const TargetPtr& each) { return each->entry->dropped.load(); }, dropped);
      evictions = now;
    }
    if (!kept->entry->dropped.load() && known.peek(tensorsOf(inputs, run_options)) == nullptr) {
      known.add(tensorsOf(inputs, run_options), kept->plan->late, kept, bytesOf(*kept->plan),
                dropped);
    }
    return kept;
  }

  ProgramCache programs;
  // Guards the members below. No thread holds it while it creates a program or a plan.
  mutable std::mutex mutex;
  RunCache<TargetPtr> known;
  int64_t plan_hits = 0;
  // The value of programs.evictions() when remember() last removed the plans of dropped programs.
  int64_t evictions = 0;

  // A thread of prepareAsync().
  struct Worker {
    std::thread thread;
    std::shared_ptr<Preparation::State> state;
  };
  std::vector<Worker> workers;

  // Joins the threads that have ended. The caller must hold `mutex`.
  void joinEnded();
};

// The state that a Preparation shares with the thread that prepares.
struct Preparation::State {
  std::mutex mutex;
  std::condition_variable ended;
  bool is_done = false;
  std::exception_ptr error;
};

void FusionExecutor::Impl::joinEnded() {
  std::erase_if(workers, [](Worker& worker) {
    if (!Preparation(worker.state).isDone()) return false;
    worker.thread.join();
    return true;
  });
}

bool Preparation::isDone() const {
  std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void Preparation::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [&] { return state_->is_done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

FusionExecutor::FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options)
    : impl_(std::make_unique<Impl>(std::move(fusion), context, options)) {}

FusionExecutor::~FusionExecutor() {
  if (!impl_) return;
  for (Impl::Worker& worker : impl_->workers) worker.thread.join();
}

FusionExecutor::FusionExecutor(FusionExecutor&&) noexcept = default;

Outputs FusionExecutor::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  return impl_->run(inputs, options);
}

PreparedRun FusionExecutor::prepareRun(const std::vector<Argument>& inputs,
                                       const RunOptions& options) {
  const Impl::TargetPtr target = impl_->prepare(inputs, options);
  return PreparedRun(std::make_unique<PreparedRun::Impl>(
      target->executable(), target->entry->executable, target->plan, inputs, options));
}

void FusionExecutor::prepare(const std::vector<Argument>& shapes, const RunOptions& options) {
  impl_->prepare(withAddresses(shapes), withAddresses(options));
}

Preparation FusionExecutor::prepareAsync(std::vector<Argument> shapes, const RunOptions& options) {
  HEDDLE_USER_CHECK_CODE(Unsupported, impl_->programs.ranks() == 1,
                         "prepareAsync() is for jobs of one rank: several ranks create programs "
                         "together, so call prepare() on all ranks in the same order");
  auto state = std::make_shared<Preparation::State>();
  auto work = [impl = impl_.get(), state, given = withAddresses(std::move(shapes)),
               run_options = withAddresses(options)] {
    std::exception_ptr error;
    try {
      impl->prepare(given, run_options);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(state->mutex);
    state->error = std::move(error);
    state->is_done = true;
    state->ended.notify_all();
  };
  std::lock_guard lock(impl_->mutex);
  impl_->joinEnded();
  Impl::Worker& worker = impl_->workers.emplace_back();
  try {
    worker.thread = startThread("prepareAsync()", std::move(work));
  } catch (...) {
    impl_->workers.pop_back();
    throw;
  }
  worker.state = state;
  return Preparation(std::move(state));
}

bool FusionExecutor::isPrepared(const std::vector<Argument>& shapes,
                                const RunOptions& options) const {
  return impl_->isPrepared(withAddresses(shapes), withAddresses(options));
}

std::shared_ptr<const Program> FusionExecutor::program(const std::vector<Argument>& shapes) {
  const ProgramCache::EntryPtr entry = impl_->entryFor(withAddresses(shapes));
  return std::make_shared<const Program>(entry->executable->program());
}

std::vector<std::string> FusionExecutor::segments(const std::vector<Argument>& shapes) const {
  return impl_->programs.segments(withAddresses(shapes));
}

std::string FusionExecutor::kernelText(const std::vector<Argument>& shapes, size_t i) {
  const std::vector<Argument> given = withAddresses(shapes);
  const ProgramCache::EntryPtr entry = impl_->entryFor(given);
  const Context& context = impl_->programs.context();
  const int64_t rank = context.world == nullptr ? 0 : context.world->rank();
  const codegen::KernelCompiler* const compiler = context.device->compiler();
  const bool clusters = compiler == nullptr || compiler->supportsClusters();
  const std::vector<KernelTexts> texts =
      kernelTexts(entry->executable->impl_->inlined, impl_->programs.sizesOf(given), rank,
                  impl_->programs.ranks(), context.device->kind(), clusters);
  HEDDLE_USER_CHECK(i < texts.size(), "there is no kernel {}: the program launches {}", i,
                    texts.size());
  return texts[i].source;
}

std::vector<TensorDesc> FusionExecutor::inputDescs(const SizeBindings& sizes) const {
  return impl_->programs.inputDescs(sizes);
}

std::vector<RankDescs> FusionExecutor::describe(const SizeBindings& sizes) const {
  return impl_->programs.describe(sizes);
}

Executable::Stats FusionExecutor::stats() const {
  Executable::Stats stats = impl_->programs.stats();
  std::lock_guard lock(impl_->mutex);
  stats.plan_hits += impl_->plan_hits;
  return stats;
}

}  // namespace heddle::host
