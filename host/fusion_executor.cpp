#include "host/fusion_executor.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <list>
#include <mutex>
#include <numeric>

#include "host/compile.h"
#include "host/compile_again.h"
#include "host/device/attention.h"
#include "host/job/communicators.h"
#include "host/plan/bind_inputs.h"
#include "host/run/run_order.h"
#include "host/run/run_state.h"
#include "host/tensor.h"
#include "ir/base/error.h"
#include "ir/graph/remove_dead.h"

namespace heddle::host {
namespace {

// What of the inputs a program is compiled for: memory order and contiguity, nothing of sizes.
// nullopt: a scalar, or an input whose layout the user has written down.
using LayoutClass = std::vector<std::optional<Layout::Observed>>;

Layout::Observed observe(const TensorDesc& desc) {
  Layout::Observed observed;
  const std::vector<int64_t>& alloc = desc.alloc.empty() ? desc.sizes : desc.alloc;
  observed.order = rowMajor(desc.rank());
  observed.contiguous.assign(desc.rank(), true);
  const bool is_given = desc.strides.size() == desc.rank() && alloc.size() == desc.rank();
  if (!is_given || desc.numel() == 0) return observed;
  std::stable_sort(observed.order.begin(), observed.order.end(), [&](int64_t a, int64_t b) {
    return desc.strides[static_cast<size_t>(a)] > desc.strides[static_cast<size_t>(b)];
  });
  int64_t span = 1;
  for (size_t i = observed.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(observed.order[i]);
    if (desc.sizes[axis] == 1) continue;
    observed.contiguous[axis] = desc.strides[axis] == span;
    span = desc.strides[axis] * alloc[axis];
  }
  return observed;
}

// Ranks must agree on the program, and one rank's layouts say nothing about another's: a job of
// several ranks has a single class, and kernels take the strides as they come.
LayoutClass classOf(const Fusion& fusion, const std::vector<Argument>& inputs, bool one_rank) {
  LayoutClass result(fusion.inputs().size());
  for (size_t i = 0; one_rank && i < std::min(inputs.size(), result.size()); ++i) {
    const Value& value = fusion.value(fusion.inputs()[i]);
    const auto* tensor = std::get_if<Tensor>(&inputs[i]);
    if (value.is_scalar || tensor == nullptr || value.tensor.layout.observed) continue;
    if (tensor->desc.rank() == value.tensor.rank()) result[i] = observe(tensor->desc);
  }
  return result;
}

Fusion withLayouts(Fusion fusion, const LayoutClass& layouts) {
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i]) fusion.layout(fusion.inputs()[i]).observed = layouts[i];
  }
  return fusion;
}

// The part of a descriptor that decides class and sizes.
bool sameMemory(const TensorDesc& a, const TensorDesc& b) {
  return a.strides == b.strides && a.sizes == b.sizes && a.alloc == b.alloc && a.global == b.global;
}

bool isSplit(const TensorView& tensor) {
  for (size_t axis = 0; tensor.sharding && axis < tensor.rank(); ++axis) {
    if (tensor.sharding->isSharded(axis)) return true;
  }
  return false;
}

// Symbols and extents alike: what is decided by the size defaults is decided by these.
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
  // decidingSizes() of the attentions. Empty where no library computes attention.
  using Widths = std::vector<int64_t>;

  struct Entry {
    // For which inputs, where sizes do not decide.
    LayoutClass layouts;
    Widths widths;
    // Where they do: what they have decided.
    std::optional<Program> program;  // withoutSizes()
    std::shared_ptr<Executable> executable;
  };
  // Inputs of an earlier run: nothing is evaluated for those that come again.
  struct Known {
    std::vector<TensorDesc> inputs;
    SizeBindings sizes;  // where they decide
    std::list<Entry>::iterator entry;
  };
  static constexpr size_t kMostKnown = 128;

  Impl(Fusion f, const Context& c, const CompileOptions& o)
      : fusion(std::move(f)), context(c), options(o) {
    constexpr const char* kWhy = "a FusionExecutor needs a device";
    if (context.device == nullptr && context.world != nullptr) context.world->fail(kWhy);
    HEDDLE_USER_CHECK(context.device != nullptr, "{}", kWhy);
    ranks = context.world == nullptr ? 1 : context.world->size();
    sizes_decide = ranks > 1 && !fusion.meshes.empty();
    // As the lowering finds them: a dead reader of a step is none.
    if (context.device->kind() == DeviceKind::Cuda) {
      searched = removeDead(fusion);
      attentions = attentionsOf(searched);
    }
    shared.stream = std::make_shared<SharedStream>(*context.device);
    shared.passes = options.passes;
  }

  static bool isKnown(const Known& known, const std::vector<Argument>& inputs) {
    if (known.inputs.size() != inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&inputs[i]);
      if (tensor != nullptr && !sameMemory(tensor->desc, known.inputs[i])) return false;
    }
    return true;
  }

  static std::vector<TensorDesc> descsOf(const std::vector<Argument>& inputs) {
    std::vector<TensorDesc> descs(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&inputs[i]);
      if (tensor != nullptr) descs[i] = tensor->desc;
    }
    return descs;
  }

  std::shared_ptr<Executable> executableFor(const std::vector<Argument>& inputs) {
    std::lock_guard lock(mutex);
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Known& each) { return isKnown(each, inputs); });
    if (found != known.end()) {
      known.splice(known.begin(), known, found);
    } else {
      joinMonitor();
      Known fresh{descsOf(inputs), {}, {}};
      try {
        fresh.entry = sizes_decide ? entryForSizes(inputs, fresh.sizes) : entryForClass(inputs);
      } catch (const std::exception& e) {
        tellJob(e.what());
        throw;
      }
      if (known.size() == kMostKnown) known.pop_back();
      known.push_front(std::move(fresh));
    }
    entries.splice(entries.begin(), entries, known.front().entry);
    return entries.front().executable;
  }

  // One for all programs.
  void joinMonitor() {
    if (ranks == 1 || shared.communicators) return;
    monitor = &jobMonitorOf(*context.world, context.monitor, context.monitor_options);
    shared.communicators = std::make_shared<Communicators>();
  }

  // Peers must not wait for a rank that has thrown.
  void tellJob(const char* reason) const noexcept {
    if (ranks == 1) return;
    monitor->fail(reason);
    context.world->interrupt(reason);
  }

  std::list<Entry>::iterator entryForClass(const std::vector<Argument>& inputs) {
    LayoutClass layouts = classOf(fusion, inputs, ranks == 1);
    const SizeBindings sizes = attentions.empty() ? SizeBindings{} : sizesIfGood(inputs);
    Widths widths = widthsFor(sizes);
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.layouts == layouts && entry.widths == widths;
    });
    if (found != entries.end()) return found;
    Program program = lowered(withLayouts(fusion, layouts), sizes);
    return add({std::move(layouts), std::move(widths), {}, {}}, std::move(program));
  }

  // The program that is lowered for these sizes: a function of them, whatever is there already.
  std::list<Entry>::iterator entryForSizes(const std::vector<Argument>& inputs,
                                           SizeBindings& sizes) {
    sizes = requiredSizes(inputs);
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](const Known& each) { return each.sizes == sizes; });
    if (same != known.end()) return same->entry;
    Program program = lowered(withSizes(fusion, sizes), sizes);
    Program decided = withoutSizes(program);
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.program->body.size() == decided.body.size() &&  // which mostly tells
             sameProgram(*entry.program, decided);
    });
    if (found != entries.end()) return found;
    const int64_t meeting = entries.empty() ? 0 : beginMeeting(sizes);
    const auto added = add({{}, {}, std::move(decided), {}}, std::move(program));
    if (meeting != 0) endMeeting(meeting);
    return added;
  }

  // The ranks make another program in what the job monitor takes for a run: so it tells when one of
  // them is in a run of a program that is there, because it was given other sizes.
  int64_t beginMeeting(const SizeBindings& sizes) const {
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

  void endMeeting(int64_t number) const {
    monitor->activity().end(comm::Activity::Waiting);
    monitor->activity().endRun(number);
  }

  std::list<Entry>::iterator add(Entry entry, Program program) {
    if (entries.size() == kMostPrograms) dropOldest();
    entry.executable = std::make_shared<Executable>(std::move(program), context, shared);
    entries.push_front(std::move(entry));
    return entries.begin();
  }

  void dropOldest() {
    const auto oldest = std::prev(entries.end());
    std::erase_if(known, [&](const Known& each) { return each.entry == oldest; });
    addStats(oldest->executable->stats(), gone);
    entries.pop_back();
  }

  static void addStats(const Executable::Stats& one, Executable::Stats& sum) {
    sum.plans += one.plans;
    sum.runs += one.runs;
    sum.held_bytes += one.held_bytes;
    sum.communicators += one.communicators;
    sum.communicator_seconds += one.communicator_seconds;
    sum.peak_bytes = std::max(sum.peak_bytes, one.peak_bytes);
  }

  SizeBindings sizesOf(const std::vector<Argument>& inputs) const {
    HEDDLE_USER_CHECK(inputs.size() <= fusion.inputs().size(), "fusion {} takes {} inputs, got {}",
                      fusion.name, fusion.inputs().size(), inputs.size());
    std::vector<std::vector<int64_t>> global(fusion.inputs().size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&inputs[i]);
      if (tensor == nullptr) continue;
      const bool whole = tensor->desc.global.empty();
      HEDDLE_USER_CHECK(!whole || !isSplit(fusion.tensor(fusion.inputs()[i])),
                        "input {} is sharded: its sizes alone do not tell the unsharded ones", i);
      global[i] = whole ? tensor->desc.sizes : tensor->desc.global;
    }
    return bindSizes(fusion, global);
  }

  // None for inputs that do not fit, of which run() tells.
  SizeBindings sizesIfGood(const std::vector<Argument>& inputs) const {
    try {
      return sizesOf(inputs);
    } catch (const UserError&) {
      return {};
    }
  }

  // Inputs that do not fit are refused as by any run: their sizes must decide nothing.
  SizeBindings requiredSizes(const std::vector<Argument>& inputs) const {
    try {
      return sizesOf(inputs);
    } catch (const UserError&) {
      bindInputs(compile(fusion, ranks, options), inputs, context.world->rank(), ranks);
      throw;
    }
  }

  std::vector<TensorDesc> inputDescs(const SizeBindings& given) const {
    SizeBindings sizes(fusion.size_defaults.begin(), fusion.size_defaults.end());
    std::vector<std::string> symbols;
    for (ValueId id : fusion.inputs()) {
      for (const IterDomain& axis : fusion.tensor(id).domain) axis.extent.collectSymbols(symbols);
    }
    for (const auto& [symbol, size] : given) {
      HEDDLE_USER_CHECK(std::find(symbols.begin(), symbols.end(), symbol) != symbols.end(),
                        "no input of fusion {} has a size {}", fusion.name, symbol);
      sizes[symbol] = size;
    }
    const Program program =
        compile(sizes_decide ? withSizes(fusion, sizes) : fusion, ranks, options);
    const int64_t rank = context.world == nullptr ? 0 : context.world->rank();
    std::vector<TensorDesc> descs;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const bool is_scalar = fusion.value(fusion.inputs()[i]).is_scalar;
      descs.push_back(is_scalar ? TensorDesc{} : inputDesc(program, i, sizes, rank, ranks));
    }
    return descs;
  }

  Widths widthsFor(const SizeBindings& sizes) const {
    Widths widths;
    if (sizes.empty()) return widths;
    for (const Attention& attention : attentions) {
      const std::vector<int64_t> deciding = decidingSizes(searched, attention, sizes);
      widths.insert(widths.end(), deciding.begin(), deciding.end());
    }
    return widths;
  }

  Program lowered(const Fusion& ready, const SizeBindings& sizes) const {
    const SegmentOptions library =
        attentions.empty() ? SegmentOptions{} : attentionOptions(context.device->kind(), sizes);
    const bool again = sizes_decide && !entries.empty();  // an Executable verifies what is new
    return again ? compileAgain(ready, ranks, options, library)
                 : compile(ready, ranks, options, library);
  }

  Fusion fusion;
  Context context;
  CompileOptions options;
  int64_t ranks = 1;
  bool sizes_decide = false;          // what is lowered, all of them
  Fusion searched;                    // without dead values
  std::vector<Attention> attentions;  // of `searched`, on devices with a library for them
  comm::JobMonitor* monitor = nullptr;
  ExecutableOptions shared;  // by all programs
  mutable std::mutex mutex;
  std::list<Entry> entries;  // the latest used first
  std::list<Known> known;    // the same; a job's ranks may differ in these, and then lower again
  Executable::Stats gone;    // of programs that are no longer there
};

FusionExecutor::FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options)
    : impl_(std::make_unique<Impl>(std::move(fusion), context, options)) {}
FusionExecutor::~FusionExecutor() = default;
FusionExecutor::FusionExecutor(FusionExecutor&&) noexcept = default;

Outputs FusionExecutor::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  return impl_->executableFor(inputs)->run(inputs, options);
}

std::vector<TensorDesc> FusionExecutor::inputDescs(const SizeBindings& sizes) const {
  return impl_->inputDescs(sizes);
}

Executable::Stats FusionExecutor::stats() const {
  std::lock_guard lock(impl_->mutex);
  Executable::Stats sum = impl_->gone;
  for (const Impl::Entry& entry : impl_->entries) {
    Impl::addStats(entry.executable->stats(), sum);
  }
  sum.programs = static_cast<int64_t>(impl_->entries.size());
  if (impl_->shared.communicators) {
    sum.communicators = impl_->shared.communicators->made();
    sum.communicator_seconds = impl_->shared.communicators->seconds();
  }
  return sum;
}

}  // namespace heddle::host
