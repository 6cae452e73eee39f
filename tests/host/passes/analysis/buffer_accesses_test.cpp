#include "host/passes/analysis/buffer_accesses.h"

#include <gtest/gtest.h>

#include "host/text/program_text.h"

namespace heddle::host::buffer_accesses_test {
namespace {

// Instructions that use different slices of a buffer may run in any order. The loop makes %v a name
// of the second slice, so it conflicts with uses of both slices.
TEST(BufferAccesses, SlicesAreDisjointUnlessALoopMovesThem) {
  const Program program = parseProgram(R"(heddle 1
program p(%x: f32[8]) -> (%y) {
  slot %y: f32[8]
  slot %u: f32[4]
  slot %v: f32[4]
  slot %w: f32[4]
  %y = allocate
  %u = alias %x slice starts=[0] stops=[4]
  %v = alias %y slice starts=[0] stops=[4]
  %w = alias %y slice starts=[4] stops=[8]
  copy %u -> %v
  copy %u -> %w
  for i in 0 .. 2 {
    copy %u -> %v
    %v = alias %y slice starts=[4] stops=[8]
  }
}
)");
  const BufferAccesses items = bufferAccessesOf(program);
  const Item &first = items.items[4], &second = items.items[5], &loop = items.items[6];
  EXPECT_FALSE(items.conflict(first, second));
  EXPECT_TRUE(items.conflict(first, first));
  EXPECT_TRUE(items.conflict(first, loop));
  EXPECT_TRUE(items.conflict(second, loop));
}

}  // namespace
}  // namespace heddle::host::buffer_accesses_test
