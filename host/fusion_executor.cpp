#include "host/fusion_executor.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <list>
#include <mutex>
#include <unordered_set>

#include "host/attention_search.h"
#include "host/compile.h"
#include "host/compile_again.h"
#include "host/device/attention.h"
#include "host/input_sizes.h"
#include "host/job/communicators.h"
#include "host/layout_class.h"
#include "host/plan/bind_inputs.h"
#include "host/plan/size_inputs.h"
#include "host/prepared_run_impl.h"
#include "host/run/run_order.h"
#include "host/run/run_state.h"
#include "host/tensor.h"
#include "ir/analysis/concretize_sizes.h"
#include "ir/analysis/size_reads.h"
#include "ir/base/error.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {
namespace {

// Returns the fusion with the sizes of a run as its default sizes, on which the passes base their
// decisions.
Fusion withSizes(Fusion fusion, const SizeBindings& sizes) {
  fusion.size_defaults.assign(sizes.begin(), sizes.end());
  return fusion;
}

Program withoutSizes(Program program) {
  program.size_defaults.clear();
  return program;
}

}  // namespace

struct FusionExecutor::Impl {
  struct Entry {
    // If depends_on_sizes is false, these three members are the key of the entry.
    LayoutClass layouts;
    std::vector<int64_t> attention_sizes;  // AttentionSearch::decidingSizesFor()
    SizeDecisions decisions;
    // If depends_on_sizes is true, the key is the lowered program without default sizes
    // (withoutSizes()).
    std::optional<Program> program;
    std::shared_ptr<Executable> executable;
  };
  // What a run uses. `plan` is nullptr if no earlier run had equal tensors and sizes.
  struct Target {
    std::shared_ptr<Executable> executable;
    std::shared_ptr<const Plan> plan;
  };
  // What an earlier run used. A run with equal tensors and sizes uses it without another look-up.
  struct Known {
    std::list<Entry>::iterator entry;
    std::shared_ptr<const Target> target;
  };
  // The entry for the sizes of an earlier run. Used if depends_on_sizes is true.
  struct KnownSizes {
    SizeBindings sizes;
    std::list<Entry>::iterator entry;
  };
  static constexpr size_t kMostKnownSizes = 128;
  // The entry for all sizes for which `reads` hold. Used if depends_on_sizes is true.
  struct KnownReads {
    SizeReads reads;
    std::list<Entry>::iterator entry;
  };
  static constexpr size_t kMostKnownReads = 32;

  Impl(Fusion f, const Context& c, const CompileOptions& o)
      : fusion(std::move(f)), context(c), options(o), size_inputs(fusion) {
    constexpr const char* kWhy = "a FusionExecutor needs a device";
    if (context.device == nullptr && context.world != nullptr) context.world->fail(kWhy);
    HEDDLE_USER_CHECK(context.device != nullptr, "{}", kWhy);
    ranks = context.world == nullptr ? 1 : context.world->size();
    depends_on_sizes = ranks > 1 && !fusion.meshes.empty();
    if (fusion.symbolic_sizes.empty()) {
      attentions = AttentionSearch(fusion, context.device->kind());
    }
    known = RunCache<Known>(size_inputs);
    shared.stream = std::make_shared<SharedStream>(*context.device);
    shared.kernels = std::make_shared<KernelStore>(*context.device, context.images);
    shared.passes = options.passes;
  }

  Outputs run(const std::vector<Argument>& inputs, const RunOptions& run_options) {
    const std::shared_ptr<const Target> target = targetOf(inputs, run_options);
    Executable::Impl& executable = *target->executable->impl_;
    if (target->plan) return executable.run(inputs, run_options, target->plan);
    std::shared_ptr<const Plan> plan;
    Outputs outputs = executable.run(inputs, run_options, nullptr, &plan);
    remember(inputs, run_options, {target->executable, std::move(plan)});
    return outputs;
  }

  std::shared_ptr<const Target> targetOf(const std::vector<Argument>& inputs,
                                         const RunOptions& run_options) {
    std::lock_guard lock(mutex);
    joinMonitor();
    try {
      const Known* found = known.find(tensorsOf(inputs, run_options));
      if (found != nullptr) {
        entries.splice(entries.begin(), entries, found->entry);
        return found->target;
      }
      const auto entry = depends_on_sizes ? entryForSizes(inputs) : entryForClass(inputs);
      entries.splice(entries.begin(), entries, entry);
      return std::make_shared<const Target>(Target{entry->executable, nullptr});
    } catch (const std::exception& e) {
      failJob(e.what());
      throw;
    }
  }

  void remember(const std::vector<Argument>& inputs, const RunOptions& run_options, Target target) {
    std::lock_guard lock(mutex);
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& each) {
      return each.executable == target.executable;
    });
    if (entry == entries.end()) return;  // another thread has dropped the program meanwhile
    const auto used = std::make_shared<const Target>(std::move(target));
    known.add(tensorsOf(inputs, run_options), used->plan->late, {entry, used});
  }

  // Creates the communicators that all programs share, and joins the job monitor.
  void joinMonitor() {
    if (ranks == 1 || shared.communicators) return;
    monitor = &jobMonitorOf(*context.world, context.monitor, context.monitor_options);
    shared.communicators = std::make_shared<Communicators>();
  }

  // Reports that this rank has failed, so that the other ranks stop waiting for it.
  void failJob(const char* reason) const noexcept {
    if (monitor == nullptr) return;
    monitor->fail(reason);
    context.world->interrupt(reason);
  }

  // Finds or adds the entry of the inputs' layout class. Used if depends_on_sizes is false.
  std::list<Entry>::iterator entryForClass(const std::vector<Argument>& inputs) {
    LayoutClass layouts = classOf(fusion, inputs, ranks == 1);
    // Trial sizes seldom fit the scalars of a fusion, so the sizes of the run serve to verify it.
    const bool is_symbolic = !fusion.symbolic_sizes.empty();
    const bool verify_sizes = size_inputs.size() > 0 || is_symbolic;
    const SizeBindings sizes = verify_sizes         ? sizesOf(inputs)
                               : attentions.empty() ? SizeBindings{}
                                                    : sizesIfValid(inputs);
    SizeDecisions decisions = decideSizes(fusion, sizes);
    std::optional<Fusion> decided;  // nullopt: there is nothing to decide
    if (is_symbolic) {
      decided = concretizeSizes(fusion, decisions);
      attentions = AttentionSearch(*decided, context.device->kind());
    }
    std::vector<int64_t> attention_sizes = attentions.decidingSizesFor(sizes);
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.layouts == layouts && entry.attention_sizes == attention_sizes &&
             entry.decisions == decisions;
    });
    if (found != entries.end()) return found;
    Program program = lowered(withLayouts(decided ? *decided : fusion, layouts), sizes);
    return add({std::move(layouts), std::move(attention_sizes), std::move(decisions), {}, {}},
               std::move(program), verify_sizes ? std::optional(sizes) : std::nullopt);
  }

  // Lowers the fusion for the sizes of the inputs, then finds or adds the entry of the result. Used
  // if depends_on_sizes is true. The result depends only on the sizes, not on the contents of the
  // cache, so all ranks get the same result.
  std::list<Entry>::iterator entryForSizes(const std::vector<Argument>& inputs) {
    SizeBindings sizes = requiredSizes(inputs);
    const auto same = std::find_if(known_sizes.begin(), known_sizes.end(),
                                   [&](const KnownSizes& each) { return each.sizes == sizes; });
    if (same != known_sizes.end()) {
      known_sizes.splice(known_sizes.begin(), known_sizes, same);
      return same->entry;
    }
    const auto entry = entryByReads(sizes);
    if (known_sizes.size() == kMostKnownSizes) known_sizes.pop_back();
    known_sizes.push_front({std::move(sizes), entry});
    return entry;
  }

  // Finds the entry without lowering, if an earlier lowering has read the same values. The result
  // is the one that lowering would give, so ranks with different caches still agree.
  std::list<Entry>::iterator entryByReads(const SizeBindings& sizes) {
    const auto same =
        std::find_if(known_reads.begin(), known_reads.end(),
                     [&](const KnownReads& each) { return each.reads.holdFor(sizes); });
    if (same != known_reads.end()) {
      known_reads.splice(known_reads.begin(), known_reads, same);
      return same->entry;
    }
    KnownReads known;
    known.entry = lowerForSizes(sizes, known.reads);
    if (known_reads.size() == kMostKnownReads) known_reads.pop_back();
    known_reads.push_front(std::move(known));
    return known_reads.front().entry;
  }

  std::list<Entry>::iterator lowerForSizes(const SizeBindings& sizes, SizeReads& reads) {
    Program program = [&] {
      const SizeReads::Recording recording(reads);
      const SizeDecisions decisions = decideSizes(fusion, sizes);
      // Decisions about sizes and the library's rules for attention also depend on sizes.
      if (decisions != SizeDecisions() || !attentions.empty()) SizeReads::noteOther();
      return lowered(withSizes(concretizeSizes(fusion, decisions), sizes), sizes);
    }();
    Program decided = withoutSizes(program);
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.program->body.size() == decided.body.size() &&  // cheap, and usually decides
             sameProgram(*entry.program, decided);
    });
    if (found != entries.end()) return found;
    const int64_t creation = entries.empty() ? 0 : beginCreation(sizes);
    const auto added = add({{}, {}, {}, std::move(decided), {}}, std::move(program));
    if (creation != 0) endCreation(creation);
    return added;
  }

  // Reports to the job monitor that this rank begins to create a further Executable together with
  // the other ranks. To the monitor, the creation looks like a run. If some rank runs a cached
  // program instead, because it has different sizes, the monitor reports that the runs differ.
  int64_t beginCreation(const SizeBindings& sizes) const {
    size_t plan = 0;
    for (const auto& [symbol, size] : sizes) {
      boost::hash_combine(plan, symbol);
      boost::hash_combine(plan, size);
    }
    const auto order = runOrderOf(*monitor);
    std::lock_guard lock(order->running);
    const int64_t number = monitor->activity().beginRun(0, plan, 0);
    monitor->activity().begin(comm::Activity::Waiting);
    return number;
  }

  void endCreation(int64_t number) const {
    monitor->activity().end(comm::Activity::Waiting);
    monitor->activity().endRun(number);
  }

  std::list<Entry>::iterator add(Entry entry, Program program,
                                 std::optional<SizeBindings> verified_sizes = {}) {
    if (entries.size() == kMostPrograms) dropOldest();
    ExecutableOptions executable_options = shared;
    executable_options.verified_sizes = std::move(verified_sizes);
    entry.executable =
        std::make_shared<Executable>(std::move(program), context, executable_options);
    entries.push_front(std::move(entry));
    return entries.begin();
  }

  void dropOldest() {
    const auto oldest = std::prev(entries.end());
    known.eraseIf([&](const Known& each) { return each.entry == oldest; });
    std::erase_if(known_sizes, [&](const KnownSizes& each) { return each.entry == oldest; });
    std::erase_if(known_reads, [&](const KnownReads& each) { return each.entry == oldest; });
    addStats(oldest->executable->stats(), dropped_stats);
    entries.pop_back();
  }

  static void addStats(const Executable::Stats& one, Executable::Stats& sum) {
    sum.plans += one.plans;
    sum.runs += one.runs;
    sum.held_bytes += one.held_bytes;
    sum.communicators += one.communicators;
    sum.communicator_seconds += one.communicator_seconds;
    if (one.runs == 0 || (sum.peak_bytes > 0 && one.peak_bytes <= sum.peak_bytes)) return;
    sum.peak_bytes = one.peak_bytes;
    sum.peak_bytes_without_reuse = one.peak_bytes_without_reuse;
  }

  SizeBindings sizesOf(const std::vector<Argument>& inputs) const {
    return sizesOfInputs(fusion, size_inputs, inputs);
  }

  // Returns the sizes of the inputs, or no sizes if the inputs do not fit the fusion.
  // Executable::run() reports the error later.
  SizeBindings sizesIfValid(const std::vector<Argument>& inputs) const {
    try {
      return sizesOf(inputs);
    } catch (const UserError&) {
      return {};
    }
  }

  // Returns the sizes of the inputs. If the inputs do not fit the fusion, bindInputs() checks them
  // against a program for the default sizes, and throws the same UserError as Executable::run().
  SizeBindings requiredSizes(const std::vector<Argument>& inputs) const {
    try {
      return sizesOf(inputs);
    } catch (const UserError&) {
      if (fusion.symbolic_sizes.empty()) {
        const Program program = compile(fusion, ranks, options);
        bindInputs(program, InputFacts(program), inputs, context.world->rank(), ranks);
      }
      throw;
    }
  }

  std::vector<TensorDesc> inputDescs(const SizeBindings& given) const {
    SizeBindings sizes = defaultSizes(fusion);
    std::vector<std::string> symbols;
    std::unordered_set<std::string> known;
    for (const std::string& symbol : size_inputs.symbols()) known.insert(symbol);
    for (ValueId id : fusion.inputs()) {
      for (const IterDomain& axis : fusion.tensor(id).domain) {
        axis.extent.collectSymbols(symbols, known);
      }
    }
    for (const auto& [symbol, size] : given) {
      HEDDLE_USER_CHECK(known.contains(symbol), "no input of fusion {} has a size {}", fusion.name,
                        symbol);
      sizes[symbol] = size;
    }
    const bool needs_sizes = depends_on_sizes || !fusion.symbolic_sizes.empty();
    const Program program =
        compile(needs_sizes ? withSizes(fusion, sizes) : fusion, ranks, options);
    const int64_t rank = context.world == nullptr ? 0 : context.world->rank();
    return host::inputDescs(program, sizes, rank, ranks);
  }

  Program lowered(const Fusion& ready, const SizeBindings& sizes) const {
    const SegmentOptions library = attentions.empty() && fusion.symbolic_sizes.empty()
                                       ? SegmentOptions{}
                                       : attentionOptions(context.device->kind(), sizes);
    // The Executable of a new program verifies the program, so compileAgain() need not. Trial sizes
    // may contradict scalars, so a program with scalars is verified for the sizes of the run only.
    const bool again = (depends_on_sizes && !entries.empty()) || size_inputs.size() > 0 ||
                       !fusion.symbolic_sizes.empty();
    return again ? compileAgain(ready, ranks, options, library)
                 : compile(ready, ranks, options, library);
  }

  Fusion fusion;
  Context context;
  CompileOptions options;
  SizeInputs size_inputs;
  int64_t ranks = 1;
  bool depends_on_sizes = false;  // true: different sizes may need a different program
  AttentionSearch attentions;     // if the fusion has symbolic sizes: those of the latest decisions
  comm::JobMonitor* monitor = nullptr;
  ExecutableOptions shared;  // options of all Executables
  mutable std::mutex mutex;
  std::list<Entry> entries;  // most recently used first
  // The contents of these caches may differ between ranks. A rank that does not find its inputs
  // here needs no other rank: it lowers the fusion again.
  RunCache<Known> known;
  std::list<KnownSizes> known_sizes;  // most recently used first
  std::list<KnownReads> known_reads;  // most recently used first
  Executable::Stats dropped_stats;    // sum over the programs that were dropped from the cache
};

FusionExecutor::FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options)
    : impl_(std::make_unique<Impl>(std::move(fusion), context, options)) {}
FusionExecutor::~FusionExecutor() = default;
FusionExecutor::FusionExecutor(FusionExecutor&&) noexcept = default;

Outputs FusionExecutor::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  return impl_->run(inputs, options);
}

PreparedRun FusionExecutor::prepareRun(const std::vector<Argument>& inputs,
                                       const RunOptions& options) {
  const std::shared_ptr<const Impl::Target> target = impl_->targetOf(inputs, options);
  Executable::Impl& executable = *target->executable->impl_;
  return PreparedRun(std::make_unique<PreparedRun::Impl>(
      executable, target->executable,
      target->plan ? target->plan : executable.prepare(inputs, options), inputs, options));
}

std::vector<TensorDesc> FusionExecutor::inputDescs(const SizeBindings& sizes) const {
  return impl_->inputDescs(sizes);
}

Executable::Stats FusionExecutor::stats() const {
  std::lock_guard lock(impl_->mutex);
  Executable::Stats sum = impl_->dropped_stats;
  for (const Impl::Entry& entry : impl_->entries) {
    Impl::addStats(entry.executable->stats(), sum);
  }
  sum.programs = static_cast<int64_t>(impl_->entries.size());
  addCounts(*impl_->shared.kernels, sum);
  if (impl_->shared.communicators) {
    sum.communicators = impl_->shared.communicators->made();
    sum.communicator_seconds = impl_->shared.communicators->seconds();
  }
  return sum;
}

}  // namespace heddle::host
