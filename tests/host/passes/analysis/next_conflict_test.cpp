#include "host/passes/analysis/next_conflict.h"

#include <gtest/gtest.h>

#include "host/text/program_text.h"

namespace heddle::host::next_conflict_test {
namespace {

// Returns the first item after `after` that conflicts with item `of`, or the number of items.
// Compares one item after another.
size_t nextByDefinition(const BufferAccesses& items, size_t of, size_t after) {
  size_t i = after + 1;
  while (i < items.items.size() && !items.conflict(items.items[of], items.items[i])) ++i;
  return std::min(i, items.items.size());
}

TEST(NextConflict, IsTheFirstConflictOfAllItems) {
  const Program program = parseProgram(R"(heddle 1
    mesh @m = [x=2]
    program f(%x: f32[4], %z: f32[4]) -> (%y) {
      slot %y: f32[4]
      slot %a: f32[4]
      slot %low: f32[2]
      slot %high: f32[2]
      slot %b: f32[2]
      %a = allocate
      copy %x -> %a
      $t = communicate allreduce %x -> %a team=@m[x] op=sum stream=1
      %b = allocate
      %low = alias %a slice starts=[0] stops=[2]
      %high = alias %a slice starts=[2] stops=[4]
      copy %low -> %b
      copy %b -> %high
      %y = allocate
      wait $t
      copy %a -> %y
      copy %z -> %y
      free %a
      free %b
    })",
                                       "f");
  const BufferAccesses items = bufferAccessesOf(program);
  const NextConflict conflicts(items);
  size_t found = 0;
  for (size_t of = 0; of < items.items.size(); ++of) {
    for (size_t after = of; after < items.items.size(); ++after) {
      EXPECT_EQ(conflicts.find(of, after), nextByDefinition(items, of, after))
          << of << " after " << after;
      found += conflicts.find(of, after) < items.items.size() ? 1 : 0;
    }
  }
  EXPECT_GT(found, size_t{10});
}

}  // namespace
}  // namespace heddle::host::next_conflict_test
