#include "host/passes/pipeline.h"

#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/executable.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"
#include "tests/host/example_files.h"

namespace heddle::host::pipeline_test {
namespace {

// A program as the lowering creates it: all work is on stream 0, and a wait follows each post.
constexpr const char* kLowered = R"(heddle 1
mesh @m = [y=2, x=2]
kernel @k {
  fusion k(%a: f32[t], %b: f32[t]) {
    %c = add(%a, %b)
    return %c
  }
}
program main(%x: f32[t], %w: f32[t]) -> (%out) with t = 8 {
  slot %a: f32[t]
  slot %b: f32[t]
  slot %c: f32[t]
  slot %d: f32[t]
  slot %e: f32[t]
  slot %v: f32[2, 4]
  slot %out: f32[t]
  %a = allocate
  launch @k(%x, %w) -> (%a)
  %b = allocate
  $t0 = communicate allreduce %a -> %b team=@m[x] op=sum
  wait $t0
  %d = allocate
  launch @k(%x, %x) -> (%d)
  %c = allocate
  $t1 = communicate allreduce %b -> %c team=@m[y] op=sum
  wait $t1
  %e = allocate
  $t2 = communicate allreduce %x -> %e team=@m[y] op=sum
  wait $t2
  %v = alias %c reshape
  %out = allocate
  launch @k(%c, %d) -> (%out)
  launch @k(%out, %e) -> (%out)
}
)";

// Removes the Wait, Free, RecordEvent or WaitEvent with number n, counted from 0, and sets `what`
// to its text. If there are fewer, subtracts their number from n and returns false.
bool removeNth(std::vector<Instruction>& body, int& n, std::string& what, const Program& program) {
  for (size_t i = 0; i < body.size(); ++i) {
    const Op& op = body[i].op;
    const bool sync = std::holds_alternative<Wait>(op) || std::holds_alternative<WaitEvent>(op) ||
                      std::holds_alternative<Free>(op) || std::holds_alternative<RecordEvent>(op);
    if (sync && n-- == 0) {
      what = printInstruction(program, body[i]);
      body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    if (auto* loop = std::get_if<For>(&body[i].op)) {
      if (removeNth(loop->body, n, what, program)) return true;
    }
  }
  return false;
}

void expectAllNecessary(const Program& program, int at_least) {
  ASSERT_NO_THROW(verify(program));
  int count = 0;
  for (;; ++count) {
    Program cut = program;
    int n = count;
    std::string what;
    if (!removeNth(cut.body, n, what, program)) break;
    try {
      verify(cut);
      ADD_FAILURE() << "not missed: " << what;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("instruction "), std::string::npos) << error.what();
    }
  }
  EXPECT_GE(count, at_least);
}

TEST(PipelineOfPrograms, EveryWaitEventAndFreeIsNecessary) {
  PassOptions options;
  options.skip = {"reuse_buffers"};  // the Free of a reused buffer has no effect
  expectAllNecessary(runPasses(parseProgram(kLowered), options), 11);
  PassOptions serial = options;
  serial.overlap = false;
  expectAllNecessary(runPasses(parseProgram(kLowered), serial), 7);
}

TEST(PipelineOfPrograms, ExamplesStayUnchanged) {
  for (const char* name : {"ring_allgather.hostir", "in_place_loop.hostir"}) {
    const Program program = testing::programExample(name);
    const Program passed = runPasses(program);
    EXPECT_TRUE(sameProgram(program, passed)) << print(passed);
    expectAllNecessary(passed, program.events.empty() ? 0 : 5);
  }
}

// With three ranks, one rank is in neither of the two stages.
TEST(PipelineOfPrograms, PipelineSendsPrecedeTheNextMicroBatch) {
  for (int ranks : {2, 3}) {
    const Program program = compile(testing::fusionExample("pipeline_2stage.fusion"), ranks);
    const std::string text = print(program);
    size_t at = 0;
    for (int i = 0; i < 4; ++i) {
      for (const std::string& next :
           {fmt::format("-> (%h{})", i), fmt::format("communicate send %h{} ", i)}) {
        const size_t found = text.find(next);
        ASSERT_NE(found, std::string::npos) << next;
        EXPECT_GT(found, at) << next << " on " << ranks << " ranks:\n" << text;
        at = found;
      }
    }
    EXPECT_GT(text.find("-> (%y0)"), at) << text;
    EXPECT_GT(text.find("wait $t0"), at) << text;
    EXPECT_GT(text.find("wait $t1"), text.find("-> (%y0)")) << text;
  }
}

TEST(PipelineOfPrograms, BufferOfALoopIsFreedInTheLoop) {
  const Program program = runPasses(parseProgram(R"(heddle 1
program main(%x: f32[4]) -> () {
  slot %a: f32[4]
  for i in 0 .. 3 {
    %a = allocate
    copy %x -> %a
    check %a
  }
}
)"));
  EXPECT_EQ(std::get<For>(program.body[0].op).body.size(), 4u);
  expectAllNecessary(program, 1);
}

}  // namespace
}  // namespace heddle::host::pipeline_test
