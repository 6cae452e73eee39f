#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/compile.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/plan/size_inputs.h"
#include "host/program_key/attention_search.h"
#include "host/program_key/layout_class.h"
#include "host/tensor.h"
#include "ir/analysis/concretize_sizes.h"
#include "ir/segment/segment.h"
#include "ir/sizes/size_reads.h"

namespace heddle::host {

class RunResources;  // host/run/completion.h

// The programs of a FusionExecutor (host/fusion_executor.h). Finds the program for the inputs of a
// run. If there is none, lowers the fusion (translates it to a host program) and creates an
// Executable for the program.
//
// Limit:   at most CacheLimits::programs programs, or one if this limit is smaller than 1. A full
//          cache drops the least recently used program. All ranks drop the same program, because
//          they begin runs in the same order.
// Threads: thread-safe. In a job of one rank, a thread that lowers or creates a program holds no
//          lock that a look-up of an existing program needs. If several threads need the same new
//          program, one of them creates it, and the others wait.
class ProgramCache {
 public:
  // The result of segmentsForAllSizes() (host/compile_stages.h). Several programs may share it.
  using SegmentsPtr = std::shared_ptr<const SegmentedFusion>;
  struct Entry {
    // If depends_on_sizes_ is false, the next three members are the key of the entry.
    LayoutClass layouts;
    // The properties of the sizes that decide which attentions a library computes
    // (AttentionSearch::decidingSizesFor()).
    std::vector<int64_t> attention_sizes;
    // Which sizes that may be 1 (`n?`) are 1, and how reshapes split and merge axes
    // (ir/analysis/concretize_sizes.h).
    SizeDecisions decisions;
    // If depends_on_sizes_ is true, the key is the lowered program without default sizes.
    std::optional<Program> program;
    // The segments before splitCalls() (ir/segment/library_calls.h): they contain all library calls
    // that some sizes allow.
    // nullptr: the fusion has neither an attention that a library may compute nor a size that may
    // be 1 (`n?`), or depends_on_sizes_ is true (KnownReads then has the segments).
    SegmentsPtr segments;
    std::shared_ptr<Executable> executable;
    std::atomic<uint64_t> last_use{0};  // value of clock_ at the last use
    std::atomic<bool> dropped{false};   // true: the cache has dropped the program
  };
  using EntryPtr = std::shared_ptr<Entry>;

  ProgramCache(Fusion fusion, const Context& context, const CompileOptions& options);

  // Returns the entry for these inputs, and creates it if there is none. In a job of several ranks,
  // all ranks create a new program together, so they must begin their runs in the same order. If
  // the call throws on one rank, the job fails.
  EntryPtr find(const std::vector<Argument>& inputs);
  // Returns the entry for these inputs if find() would return it without lowering the fusion.
  // Returns nullptr if find() would lower the fusion or throw UserError. Like find(), may return an
  // entry for inputs that do not fit the fusion: run() then reports the error. Does not count as a
  // use, and needs no other rank.
  EntryPtr peek(const std::vector<Argument>& inputs);
  // Marks an entry as used now.
  void use(Entry& entry) { entry.last_use.store(++clock_, std::memory_order_relaxed); }

  // Returns FusionExecutor::inputDescs().
  std::vector<TensorDesc> inputDescs(const SizeBindings& given) const;
  // Returns FusionExecutor::describe().
  std::vector<RankDescs> describe(const SizeBindings& given) const;
  // Returns segmentTexts() (host/inspect.h) for these inputs.
  std::vector<std::string> segments(const std::vector<Argument>& inputs) const;
  // Returns the values of the size symbols for these inputs.
  SizeBindings sizesOf(const std::vector<Argument>& inputs) const;
  // Returns FusionExecutor::stats(), except that `plan_hits` does not count the calls that found
  // their plan in the table of the FusionExecutor.
  Executable::Stats stats() const;

  const Context& context() const { return context_; }
  const SizeInputs& sizeInputs() const { return size_inputs_; }
  int64_t ranks() const { return ranks_; }
  // Returns how many programs the cache has dropped.
  int64_t evictions() const { return evictions_.load(); }

 private:
  // The entry for the sizes of an earlier run. Used if depends_on_sizes_ is true.
  struct KnownSizes {
    SizeBindings sizes;
    EntryPtr entry;
  };
  static constexpr size_t kMostKnownSizes = 128;
  // The entry for a set of sizes that lead to the same program. The set contains all sizes that
  // lead to these `decisions` and `attention_sizes`, and for which the size expressions in `reads`
  // have the recorded values. Used if depends_on_sizes_ is true.
  struct KnownReads {
    SizeDecisions decisions;
    // The attentions of the fusion to which `decisions` have been applied.
    std::shared_ptr<const AttentionSearch> attentions;
    std::vector<int64_t> attention_sizes;
    SizeReads reads;       // the size expressions whose values decided something in the lowering
    SegmentsPtr segments;  // see Entry::segments
    EntryPtr entry;
  };
  static constexpr size_t kMostKnownReads = 32;
  // The key of a look-up if depends_on_sizes_ is false: in a job of one rank, or for a fusion
  // without a mesh.
  struct ClassKey {
    LayoutClass layouts;
    // The sizes of the run; look-ups do not compare them. Empty if no other member depends on the
    // sizes, or if the inputs do not fit the fusion.
    SizeBindings sizes;
    SizeDecisions decisions;
    // The fusion with `decisions` applied. nullopt: there are no decisions.
    std::optional<Fusion> decided;
    std::vector<int64_t> attention_sizes;
  };

  void joinMonitor();
  static Fusion withSizes(Fusion fusion, const SizeBindings& sizes);
  SizeDecisions decisionsFor(const SizeBindings& sizes) const;
  ClassKey keyOf(const std::vector<Argument>& inputs) const;
  EntryPtr entryOf(const ClassKey& key) const;
  EntryPtr entryForClass(const std::vector<Argument>& inputs);
  EntryPtr entryForSizes(const std::vector<Argument>& inputs);
  EntryPtr knownBySizes(const SizeBindings& sizes);
  EntryPtr knownByReads(const SizeDecisions& decisions, const SizeBindings& sizes);
  SegmentsPtr segmentsFor(const ClassKey& key) const;
  SegmentsPtr segmentsByReads(const SizeDecisions& decisions, const SizeBindings& sizes,
                              SizeReads& reads);
  EntryPtr lowerForSizes(const Fusion& decided, const SizeBindings& sizes, KnownReads& known);
  int64_t beginCreation(const SizeBindings& sizes) const;
  void endCreation(int64_t number) const;
  EntryPtr add(EntryPtr entry, Program program, std::optional<SizeBindings> verified_sizes = {});
  EntryPtr dropOldest();
  EntryPtr hit(EntryPtr entry);
  std::shared_ptr<const AttentionSearch> attentionsOf(const Fusion& decided) const;
  SizeBindings sizesIfValid(const std::vector<Argument>& inputs) const;
  SizeBindings requiredSizes(const std::vector<Argument>& inputs) const;
  SizeBindings sizesWith(const SizeBindings& given) const;
  Program programFor(const SizeBindings& sizes) const;
  Program lowered(const Fusion& ready, const SizeBindings& sizes, SegmentsPtr& segments);
  size_t size() const;

  Fusion fusion_;
  Context context_;
  CompileOptions options_;
  SizeInputs size_inputs_;
  int64_t ranks_ = 1;
  // true: the fusion is lowered for the sizes of the run, because it has a mesh and the job has
  // several ranks.
  bool depends_on_sizes_ = false;
  bool verifies_sizes_ = false;  // true: new programs are verified for the sizes of the run
  // nullptr: the fusion has sizes that may be 1 (`n?`, Fusion::symbolic_sizes), so its attentions
  // depend on the decisions about these sizes.
  std::shared_ptr<const AttentionSearch> attentions_;
  ExecutableOptions shared_;        // options of all Executables
  ExecutableParts parts_;           // parts of all Executables
  std::atomic<uint64_t> clock_{0};  // number of uses of all entries so far; see Entry::last_use

  // Held while a program is lowered and created, and in a job of several ranks during find().
  std::mutex creating_;
  int64_t created_ = 0;  // number of programs created so far; creating_ guards it
  std::atomic<int64_t> hits_{0};
  std::atomic<int64_t> evictions_{0};
  std::atomic<int64_t> segmentations_{0};  // Stats::segmentations
  std::atomic<int64_t> split_calls_{0};    // Stats::split_calls
  // Guards all members below. A thread that locks both mutexes locks creating_ first.
  mutable std::mutex mutex_;
  comm::JobMonitor* monitor_ = nullptr;
  std::vector<EntryPtr> entries_;
  // Most recently used first. The contents of these lists may differ between ranks. A rank that
  // does not find the sizes of its inputs here lowers the fusion again, which needs no other rank.
  std::list<KnownSizes> known_sizes_;
  std::list<KnownReads> known_reads_;
  Executable::Stats dropped_stats_;  // sum over the programs that were dropped
  // The resources of the dropped programs, whose outputs may still exist.
  std::vector<std::weak_ptr<RunResources>> dropped_resources_;
};

}  // namespace heddle::host
