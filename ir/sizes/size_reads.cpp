#include "ir/sizes/size_reads.h"

#include <algorithm>

#include "ir/base/error.h"

namespace heddle {
namespace {

thread_local SizeReads* recorded = nullptr;

}  // namespace

SizeReads::Recording::Recording(SizeReads& reads) : previous_(recorded) { recorded = &reads; }

SizeReads::Recording::~Recording() { recorded = previous_; }

void SizeReads::note(const Size& size, int64_t value) {
  if (recorded == nullptr || size.isConstant() || !recorded->complete_) return;
  auto& reads = recorded->reads_;
  const bool is_known =
      std::any_of(reads.begin(), reads.end(), [&](const auto& each) { return each.first == size; });
  if (is_known) return;
  if (reads.size() == kMost) return noteOther();
  reads.emplace_back(size, value);
}

void SizeReads::noteOther() {
  if (recorded != nullptr) recorded->complete_ = false;
}

bool SizeReads::holdFor(const SizeBindings& sizes) const try {
  return complete_ && std::all_of(reads_.begin(), reads_.end(), [&](const auto& each) {
           return each.first.evaluate(lookupIn(sizes)) == each.second;
         });
} catch (const UserError&) {
  return false;  // a symbol has no value, or an expression overflows
}

}  // namespace heddle
