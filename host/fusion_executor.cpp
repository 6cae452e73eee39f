#include <algorithm>
#include <list>
#include <mutex>
#include <numeric>

#include "host/attention.h"
#include "host/bind.h"
#include "host/executable.h"
#include "host/run_state.h"
#include "ir/error.h"
#include "ir/passes/remove_dead.h"

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

// The part of a descriptor that decides its class.
bool sameLayout(const TensorDesc& a, const TensorDesc& b) {
  return a.strides == b.strides && a.sizes == b.sizes && a.alloc == b.alloc;
}

}  // namespace

struct FusionExecutor::Impl {
  // Which programs fit the sizes of a run: decidingSizes() of its attentions. Empty where no
  // library computes attention.
  using Widths = std::vector<int64_t>;

  struct Entry {
    LayoutClass layouts;
    Widths widths;
    std::vector<TensorDesc> latest;  // inputs of the latest run, compared before the class is made
    Executable executable;
  };

  Impl(Fusion f, const Context& c, const CompileOptions& o)
      : fusion(std::move(f)), context(c), options(o) {
    HEDDLE_USER_CHECK(context.device != nullptr, "a FusionExecutor needs a device");
    // As the lowering finds them: a dead reader of a step is none.
    if (context.device->kind() == DeviceKind::Cuda) {
      searched = removeDead(fusion);
      attentions = attentionsOf(searched);
    }
    stream = std::make_shared<SharedStream>(*context.device);
  }

  static bool isLatest(const Entry& entry, const std::vector<Argument>& inputs) {
    if (entry.latest.size() != inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&inputs[i]);
      if (tensor != nullptr && !sameLayout(tensor->desc, entry.latest[i])) return false;
    }
    return true;
  }

  static void remember(Entry& entry, const std::vector<Argument>& inputs) {
    entry.latest.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&inputs[i]);
      entry.latest[i] = tensor == nullptr ? TensorDesc{} : tensor->desc;
    }
  }

  Executable& executableFor(const std::vector<Argument>& inputs) {
    std::lock_guard lock(mutex);
    if (!entries.empty() && isLatest(entries.front(), inputs)) return entries.front().executable;
    const int64_t ranks = context.world == nullptr ? 1 : context.world->size();
    LayoutClass layouts = classOf(fusion, inputs, ranks == 1);
    const SizeBindings sizes = attentions.empty() ? SizeBindings{} : sizesOf(inputs, ranks);
    Widths widths = widthsFor(sizes);
    auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.layouts == layouts && entry.widths == widths;
    });
    if (found == entries.end()) {
      ExecutableOptions executable_options;
      executable_options.passes = options.passes;
      executable_options.stream = stream;
      Program program = build(withLayouts(fusion, layouts), ranks, sizes);
      entries.push_front({std::move(layouts),
                          std::move(widths),
                          {},
                          Executable(std::move(program), context, executable_options)});
    } else {
      entries.splice(entries.begin(), entries, found);
    }
    remember(entries.front(), inputs);
    return entries.front().executable;
  }

  // None for inputs that do not fit, of which run() tells.
  SizeBindings sizesOf(const std::vector<Argument>& inputs, int64_t ranks) {
    if (!any_sizes) any_sizes = build(fusion, ranks, {});
    try {
      const int64_t rank = context.world == nullptr ? 0 : context.world->rank();
      return bindInputs(*any_sizes, inputs, rank, ranks).sizes;
    } catch (const UserError&) {
      return {};
    }
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

  Program build(const Fusion& fusion_of_class, int64_t ranks, const SizeBindings& sizes) const {
    try {
      return compile(
          fusion_of_class, ranks, options,
          attentions.empty() ? SegmentOptions{} : attentionOptions(context.device->kind(), sizes));
    } catch (const std::exception& e) {
      if (ranks > 1) context.world->abort(e.what());
      throw;
    }
  }

  Fusion fusion;
  Context context;
  CompileOptions options;
  Fusion searched;                    // without dead values
  std::vector<Attention> attentions;  // of `searched`, on devices with a library for them
  std::optional<Program> any_sizes;   // good for any sizes: it tells those of the inputs
  std::shared_ptr<SharedStream> stream;
  mutable std::mutex mutex;
  std::list<Entry> entries;  // the latest used first; an Executable stays where it is
};

FusionExecutor::FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options)
    : impl_(std::make_unique<Impl>(std::move(fusion), context, options)) {}
FusionExecutor::~FusionExecutor() = default;
FusionExecutor::FusionExecutor(FusionExecutor&&) noexcept = default;

Outputs FusionExecutor::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  return impl_->executableFor(inputs).run(inputs, options);
}

Executable::Stats FusionExecutor::stats() const {
  std::lock_guard lock(impl_->mutex);
  Executable::Stats sum;
  for (const Impl::Entry& entry : impl_->entries) {
    const Executable::Stats stats = entry.executable.stats();
    sum.plans += stats.plans;
    sum.runs += stats.runs;
    sum.held_bytes += stats.held_bytes;
    sum.communicators += stats.communicators;
    sum.communicator_seconds += stats.communicator_seconds;
    sum.peak_bytes = std::max(sum.peak_bytes, stats.peak_bytes);
  }
  return sum;
}

}  // namespace heddle::host
