#include "host/program_cache.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "host/compile_stages.h"
#include "host/device/attention.h"
#include "host/executable_impl.h"
#include "host/job/communicators.h"
#include "host/job/job_link.h"
#include "host/plan/bind_inputs.h"
#include "host/plan/kernel_store.h"
#include "host/program_key/input_sizes.h"
#include "host/run/completion.h"
#include "host/run/run_order.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/segment/library_calls.h"

namespace heddle::host {
namespace {

Program withoutSizes(Program program) {
  program.size_defaults.clear();
  return program;
}

void addStats(const Executable::Stats& one, Executable::Stats& sum) {
  sum.plans += one.plans;
  sum.plan_hits += one.plan_hits;
  sum.plan_evictions += one.plan_evictions;
  sum.runs += one.runs;
  sum.held_bytes += one.held_bytes;
  sum.communicators += one.communicators;
  sum.communicator_seconds += one.communicator_seconds;
  if (one.runs == 0 || (sum.peak_bytes > 0 && one.peak_bytes <= sum.peak_bytes)) return;
  sum.peak_bytes = one.peak_bytes;
  sum.peak_bytes_without_reuse = one.peak_bytes_without_reuse;
}

}  // namespace

ProgramCache::ProgramCache(Fusion fusion, const Context& context, const CompileOptions& options)
    : fusion_(std::move(fusion)), context_(context), options_(options), size_inputs_(fusion_) {
  constexpr const char* kWhy = "a FusionExecutor needs a device";
  if (context_.device == nullptr && context_.world != nullptr) context_.world->fail(kWhy);
  HEDDLE_USER_CHECK(context_.device != nullptr, "{}", kWhy);
  ranks_ = context_.world == nullptr ? 1 : context_.world->size();
  depends_on_sizes_ = ranks_ > 1 && !fusion_.meshes.empty();
  if (fusion_.symbolic_sizes.empty()) {
    attentions_ = std::make_shared<AttentionSearch>(fusion_, context_.device->kind());
  }
  // If values of inputs decide sizes, or if the fusion has sizes that may be 1 (`n?`), a program is
  // verified for the sizes of the run. verify() would otherwise try a few sizes, which seldom fit.
  verifies_sizes_ = size_inputs_.size() > 0 || !attentions_;
  parts_.stream = std::make_shared<SharedStream>(*context_.device);
  parts_.kernels = std::make_shared<KernelStore>(*context_.device, context_.images,
                                                 options_.caches.kernel_bytes);
  shared_.caches = options_.caches;
  shared_.check_numerics = options_.check_numerics;
  shared_.kernel_choices = options_.kernel_choices;
  shared_.choices_only = options_.choices_only;
  for (ValueId output : fusion_.outputs()) {
    shared_.output_names.push_back(fusion_.value(output).name);
  }
}

ProgramCache::EntryPtr ProgramCache::find(const std::vector<Argument>& inputs) {
  try {
    if (ranks_ == 1) {
      if (EntryPtr found = entryOf(keyOf(inputs))) return hit(std::move(found));
    }
    const std::lock_guard creating(creating_);
    joinMonitor();
    const int64_t before = created_;
    EntryPtr entry = depends_on_sizes_ ? entryForSizes(inputs) : entryForClass(inputs);
    use(*entry);
    return created_ == before ? hit(std::move(entry)) : entry;
  } catch (const std::exception&) {
    failJobAndRethrow(monitor_, context_.world);
  }
}

ProgramCache::EntryPtr ProgramCache::hit(EntryPtr entry) {
  use(*entry);
  hits_.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

// In a job of several ranks, the first call joins the job monitor and creates the communicators.
void ProgramCache::joinMonitor() {
  if (ranks_ == 1 || parts_.communicators) return;
  comm::JobMonitor* const joined =
      &jobMonitorOf(*context_.world, nullptr, context_.monitor_options);
  std::lock_guard lock(mutex_);
  monitor_ = joined;
  parts_.communicators = std::make_shared<Communicators>();
}

// Returns the attentions of the fusion. If it has sizes that may be 1 (`n?`), searches `decided`,
// the fusion to which the decisions about these sizes have been applied.
std::shared_ptr<const AttentionSearch> ProgramCache::attentionsOf(const Fusion& decided) const {
  return attentions_ ? attentions_
                     : std::make_shared<AttentionSearch>(decided, context_.device->kind());
}

// Returns the fusion with the sizes of a run as its defaults, which passes use for decisions.
Fusion ProgramCache::withSizes(Fusion fusion, const SizeBindings& sizes) {
  fusion.size_defaults.assign(sizes.begin(), sizes.end());
  return fusion;
}

// Returns the decisions that change the program. Omits each reshape that needs no change.
SizeDecisions ProgramCache::decisionsFor(const SizeBindings& sizes) const {
  SizeDecisions decisions = decideSizes(fusion_, sizes);
  std::erase_if(decisions.reshapes,
                [](const ReshapeDecision& reshape) { return reshape.then.empty(); });
  return decisions;
}

ProgramCache::ClassKey ProgramCache::keyOf(const std::vector<Argument>& inputs) const {
  ClassKey key;
  key.layouts = classOf(fusion_, inputs, ranks_ == 1);
  if (verifies_sizes_) {
    key.sizes = sizesOfInputs(fusion_, size_inputs_, inputs);
  } else if (!attentions_->empty()) {
    key.sizes = sizesIfValid(inputs);
  }
  key.decisions = decisionsFor(key.sizes);
  if (key.decisions != SizeDecisions()) key.decided = concretizeSizes(fusion_, key.decisions);
  key.attention_sizes =
      attentionsOf(key.decided ? *key.decided : fusion_)->decidingSizesFor(key.sizes);
  return key;
}

ProgramCache::EntryPtr ProgramCache::entryOf(const ClassKey& key) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const EntryPtr& entry) {
    return entry->layouts == key.layouts && entry->attention_sizes == key.attention_sizes &&
           entry->decisions == key.decisions;
  });
  return found == entries_.end() ? nullptr : *found;
}

// Finds or adds the entry with the key of the inputs. Used if depends_on_sizes_ is false.
ProgramCache::EntryPtr ProgramCache::entryForClass(const std::vector<Argument>& inputs) {
  ClassKey key = keyOf(inputs);
  if (EntryPtr found = entryOf(key)) return found;
  auto entry = std::make_shared<Entry>();
  entry->segments = segmentsFor(key);
  Program program = lowered(withLayouts(key.decided ? *key.decided : fusion_, key.layouts),
                            key.sizes, entry->segments);
  entry->layouts = std::move(key.layouts);
  entry->attention_sizes = std::move(key.attention_sizes);
  entry->decisions = std::move(key.decisions);
  return add(std::move(entry), std::move(program),
             verifies_sizes_ ? std::optional(key.sizes) : std::nullopt);
}

// Returns the segments of a cached program whose key differs only in `attention_sizes`, or nullptr.
// Such programs differ only in the library calls that their sizes allow.
ProgramCache::SegmentsPtr ProgramCache::segmentsFor(const ClassKey& key) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const EntryPtr& entry) {
    return entry->segments && entry->layouts == key.layouts && entry->decisions == key.decisions;
  });
  return found == entries_.end() ? nullptr : (*found)->segments;
}

// Returns the entry for the sizes of the inputs. Used if depends_on_sizes_ is true. If known_sizes_
// and known_reads_ contain no entry for them, lowers the fusion, and finds or adds the entry of the
// resulting program. The entry depends only on the sizes, not on the contents of the cache, so all
// ranks get equal entries.
ProgramCache::EntryPtr ProgramCache::entryForSizes(const std::vector<Argument>& inputs) {
  SizeBindings sizes = requiredSizes(inputs);
  EntryPtr entry = knownBySizes(sizes);
  if (entry) return entry;
  SizeDecisions decisions = decisionsFor(sizes);
  entry = knownByReads(decisions, sizes);
  if (!entry) {
    const Fusion decided = concretizeSizes(fusion_, decisions);
    KnownReads known{std::move(decisions), attentionsOf(decided), {}, {}, {}, {}};
    known.attention_sizes = known.attentions->decidingSizesFor(sizes);
    known.segments = segmentsByReads(known.decisions, sizes, known.reads);
    known.entry = entry = lowerForSizes(decided, sizes, known);
    std::lock_guard lock(mutex_);
    if (known_reads_.size() == kMostKnownReads) known_reads_.pop_back();
    known_reads_.push_front(std::move(known));
  }
  std::lock_guard lock(mutex_);
  if (known_sizes_.size() == kMostKnownSizes) known_sizes_.pop_back();
  known_sizes_.push_front({std::move(sizes), entry});
  return entry;
}

ProgramCache::EntryPtr ProgramCache::knownBySizes(const SizeBindings& sizes) {
  std::lock_guard lock(mutex_);
  const auto same = std::find_if(known_sizes_.begin(), known_sizes_.end(),
                                 [&](const KnownSizes& each) { return each.sizes == sizes; });
  if (same == known_sizes_.end()) return nullptr;
  known_sizes_.splice(known_sizes_.begin(), known_sizes_, same);
  return same->entry;
}

// Returns the entry of an earlier lowering that has read the same values, or nullptr. A new
// lowering would give the same entry, so ranks with different caches still agree.
ProgramCache::EntryPtr ProgramCache::knownByReads(const SizeDecisions& decisions,
                                                  const SizeBindings& sizes) {
  std::lock_guard lock(mutex_);
  const auto same =
      std::find_if(known_reads_.begin(), known_reads_.end(), [&](const KnownReads& each) {
        return each.decisions == decisions && each.reads.holdFor(sizes) &&
               each.attentions->decidingSizesFor(sizes) == each.attention_sizes;
      });
  if (same == known_reads_.end()) return nullptr;
  known_reads_.splice(known_reads_.begin(), known_reads_, same);
  return same->entry;
}

// Returns the segments of an earlier lowering that has read the same values, or nullptr. A new
// segmentation would give the same segments, so ranks with different caches still agree. `reads`
// receives the values that the earlier lowering has read.
ProgramCache::SegmentsPtr ProgramCache::segmentsByReads(const SizeDecisions& decisions,
                                                        const SizeBindings& sizes,
                                                        SizeReads& reads) {
  std::lock_guard lock(mutex_);
  const auto same =
      std::find_if(known_reads_.begin(), known_reads_.end(), [&](const KnownReads& each) {
        return each.segments && each.decisions == decisions && each.reads.holdFor(sizes);
      });
  if (same == known_reads_.end()) return nullptr;
  reads = same->reads;
  return same->segments;
}

// Lowers the fusion, and finds or adds the entry of the resulting program. `known` receives the
// values of sizes that decide something in the lowering, and the segments if it has none yet.
ProgramCache::EntryPtr ProgramCache::lowerForSizes(const Fusion& decided, const SizeBindings& sizes,
                                                   KnownReads& known) {
  Program program = [&] {
    const SizeReads::Recording recording(known.reads);
    return lowered(withSizes(decided, sizes), sizes, known.segments);
  }();
  auto entry = std::make_shared<Entry>();
  entry->program = withoutSizes(program);
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const EntryPtr& each) {
      return each->program->body.size() == entry->program->body.size() &&  // fast; often differs
             sameProgram(*each->program, *entry->program);
    });
    if (found != entries_.end()) return *found;
  }
  const int64_t creation = size() == 0 ? 0 : beginCreation(sizes);
  EntryPtr added = add(std::move(entry), std::move(program));
  if (creation != 0) endCreation(creation);
  return added;
}

// Reports to the job monitor that this rank begins to create a further Executable together with the
// other ranks. To the monitor, the creation looks like a run. If some rank runs a cached program
// instead, because it has different sizes, the monitor reports that the runs differ.
int64_t ProgramCache::beginCreation(const SizeBindings& sizes) const {
  size_t plan = 0;
  for (const auto& [symbol, size] : sizes) {
    boost::hash_combine(plan, symbol);
    boost::hash_combine(plan, size);
  }
  const auto order = runOrderOf(*monitor_);
  std::lock_guard lock(order->running);
  const int64_t number = monitor_->activity().beginRun(0, plan, 0);
  monitor_->activity().begin(comm::Activity::Waiting);
  return number;
}

void ProgramCache::endCreation(int64_t number) const {
  monitor_->activity().end(comm::Activity::Waiting);
  monitor_->activity().endRun(number);
}

ProgramCache::EntryPtr ProgramCache::add(EntryPtr entry, Program program,
                                         std::optional<SizeBindings> verified_sizes) {
  ExecutableOptions options = shared_;
  options.verified_sizes = std::move(verified_sizes);
  entry->executable =
      std::make_shared<Executable>(parts_.make(std::move(program), context_, options));
  use(*entry);
  ++created_;
  const EntryPtr dropped = dropOldest();
  if (dropped) {
    const Executable::Stats stats = dropped->executable->stats();
    std::lock_guard lock(mutex_);
    addStats(stats, dropped_stats_);
    dropped_stats_.held_bytes = 0;
    dropped_resources_.push_back(ExecutableParts::resourcesOf(*dropped->executable));
  }
  std::lock_guard lock(mutex_);
  entries_.push_back(entry);
  return entry;
}

// Removes the least recently used entry and returns it, or nullptr if the cache is not full. The
// caller destroys the entry without holding mutex_, because its Executable waits for its runs.
ProgramCache::EntryPtr ProgramCache::dropOldest() {
  std::lock_guard lock(mutex_);
  if (entries_.size() < std::max<size_t>(1, options_.caches.programs)) return nullptr;
  const auto oldest = std::min_element(
      entries_.begin(), entries_.end(),
      [](const EntryPtr& a, const EntryPtr& b) { return a->last_use.load() < b->last_use.load(); });
  EntryPtr dropped = *oldest;
  dropped->dropped.store(true);
  ++evictions_;
  std::erase_if(known_sizes_, [&](const KnownSizes& each) { return each.entry == dropped; });
  std::erase_if(known_reads_, [&](const KnownReads& each) { return each.entry == dropped; });
  entries_.erase(oldest);
  return dropped;
}

size_t ProgramCache::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

// Returns the sizes of the inputs, or none if they do not fit the fusion: run() then throws later.
SizeBindings ProgramCache::sizesIfValid(const std::vector<Argument>& inputs) const {
  try {
    return sizesOfInputs(fusion_, size_inputs_, inputs);
  } catch (const UserError&) {
    return {};
  }
}

// Returns the sizes of the inputs. If the inputs do not fit the fusion, bindInputs() checks them
// against a program for the default sizes, and throws the same UserError as Executable::run(). For
// a fusion with sizes that may be 1, the function throws the error of sizesOfInputs() instead.
SizeBindings ProgramCache::requiredSizes(const std::vector<Argument>& inputs) const {
  try {
    return sizesOfInputs(fusion_, size_inputs_, inputs);
  } catch (const UserError&) {
    if (fusion_.symbolic_sizes.empty()) {
      const Program program = compile(fusion_, ranks_, options_);
      bindInputs(program, InputFacts(program), inputs, context_.world->rank(), ranks_);
    }
    throw;
  }
}

// Compiles the fusion `ready` for these sizes. If `segments` is nullptr, splits the fusion into
// segments, and stores them in `segments` if they may contain attentions.
Program ProgramCache::lowered(const Fusion& ready, const SizeBindings& sizes,
                              SegmentsPtr& segments) {
  const bool has_calls = !attentions_ || !attentions_->empty();
  const SegmentOptions library =
      has_calls ? attentionOptions(context_.device->kind(), sizes) : SegmentOptions{};
  // The Executable verifies a new program. In two cases, the compilation does not verify it:
  // - depends_on_sizes_, if programs are cached: the result usually equals one that is verified.
  // - verifies_sizes_: the passes would verify the program for a few trial sizes, which may
  //   contradict the values of inputs that decide sizes.
  CompileOptions options = options_;
  if ((depends_on_sizes_ && size() > 0) || verifies_sizes_) options.passes.verify = false;
  SegmentedFusion segmented;
  if (segments) {
    segmented = *segments;
    segmented.fusion.size_defaults = ready.size_defaults;
  } else {
    segmented = segmentsForAllSizes(ready, ranks_, options, library);
    ++segmentations_;
    if (has_calls) segments = std::make_shared<const SegmentedFusion>(segmented);
  }
  segmented = splitCalls(std::move(segmented), library);
  split_calls_ += segmented.split_calls;
  return compileSegments(segmented, ranks_, options);
}

Executable::Stats ProgramCache::stats() const {
  // Executable::stats() is called without the lock: it takes as long as the creation of a plan.
  std::unique_lock lock(mutex_);
  Executable::Stats sum = dropped_stats_;
  const std::vector<EntryPtr> entries = entries_;
  const std::shared_ptr<Communicators> communicators = parts_.communicators;
  for (const std::weak_ptr<RunResources>& each : dropped_resources_) {
    if (const auto resources = each.lock()) sum.held_bytes += resources->held_bytes.load();
  }
  lock.unlock();
  sum.program_hits = hits_.load();
  sum.program_evictions = evictions_.load();
  sum.segmentations = segmentations_.load();
  sum.split_calls = split_calls_.load();
  sum.unreported_failures = parts_.stream->unreported_failures.load();
  for (const EntryPtr& entry : entries) addStats(entry->executable->stats(), sum);
  sum.programs = static_cast<int64_t>(entries.size());
  addCounts(*parts_.kernels, sum);
  if (communicators) {
    sum.communicators = communicators->made();
    sum.communicator_seconds = communicators->seconds();
  }
  return sum;
}

}  // namespace heddle::host
