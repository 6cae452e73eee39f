// The queries of ProgramCache about sizes and programs. They add and drop no entries.
#include <unordered_set>

#include "host/device/attention.h"
#include "host/inspect.h"
#include "host/passes/pipeline.h"
#include "host/program_cache.h"
#include "host/program_key/input_sizes.h"
#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {

std::vector<TensorDesc> ProgramCache::inputDescs(const SizeBindings& given) const {
  const SizeBindings sizes = sizesWith(given);
  const int64_t rank = context_.world == nullptr ? 0 : context_.world->rank();
  return host::inputDescs(programFor(sizes), sizes, rank, ranks_);
}

std::vector<RankDescs> ProgramCache::describe(const SizeBindings& given) const {
  const SizeBindings sizes = sizesWith(given);
  return host::describe(programFor(sizes), sizes, ranks_);
}

SizeBindings ProgramCache::sizesOf(const std::vector<Argument>& inputs) const {
  return sizesOfInputs(fusion_, size_inputs_, inputs);
}

std::vector<std::string> ProgramCache::segments(const std::vector<Argument>& inputs) const {
  const SizeBindings sizes = sizesOf(inputs);
  Fusion ready = concretizeSizes(fusion_, decisionsFor(sizes));
  ready = depends_on_sizes_ ? withSizes(std::move(ready), sizes)
                            : withLayouts(ready, classOf(fusion_, inputs, ranks_ == 1));
  return segmentTexts(segment(runFusionPasses(ready, ranks_, options_.passes),
                              attentionOptions(context_.device->kind(), sizes)));
}

// Returns the given sizes, and the default of every symbol that `given` lacks. A symbol that has
// neither is not in the result. Throws UserError if no input has a symbol of `given`.
SizeBindings ProgramCache::sizesWith(const SizeBindings& given) const {
  SizeBindings sizes = defaultSizes(fusion_);
  std::vector<std::string> symbols;
  std::unordered_set<std::string> known;
  for (const std::string& symbol : size_inputs_.symbols()) known.insert(symbol);
  for (ValueId id : fusion_.inputs()) {
    for (const IterDomain& axis : fusion_.tensor(id).domain) {
      axis.extent.collectSymbols(symbols, known);
    }
  }
  for (const auto& [symbol, size] : given) {
    HEDDLE_USER_CHECK(known.contains(symbol), "no input of fusion {} has a size {}", fusion_.name,
                      symbol);
    sizes[symbol] = size;
  }
  return sizes;
}

Program ProgramCache::programFor(const SizeBindings& sizes) const {
  const bool needs_sizes = depends_on_sizes_ || !fusion_.symbolic_sizes.empty();
  return compile(needs_sizes ? withSizes(fusion_, sizes) : fusion_, ranks_, options_);
}

ProgramCache::EntryPtr ProgramCache::peek(const std::vector<Argument>& inputs) {
  try {
    if (!depends_on_sizes_) return entryOf(keyOf(inputs));
    const SizeBindings sizes = sizesOfInputs(fusion_, size_inputs_, inputs);
    const EntryPtr entry = knownBySizes(sizes);
    return entry ? entry : knownByReads(decisionsFor(sizes), sizes);
  } catch (const UserError&) {
    return nullptr;
  }
}

}  // namespace heddle::host
