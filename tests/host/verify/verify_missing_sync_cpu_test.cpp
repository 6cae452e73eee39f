// Removes each Wait, WaitEvent and Free from the program of each example, one at a time. verify()
// must then report an error that names an instruction. If verify() is skipped, a missing wait must
// give a wrong result for some order of the streams.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/compile.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"
#include "tests/host/example_files.h"

namespace heddle::host::verify_missing_sync_cpu_test {
namespace {

using testing::HarnessOptions;

struct Example {
  std::string name;
  Program program;
  HarnessOptions options;
};

Example exampleOf(const std::string& name, int ranks) {
  Example example;
  example.name = fmt::format("{} on {} ranks", name, ranks);
  example.options.ranks = ranks;
  auto source = parseFile(testing::readExample(name), name);
  if (const Fusion* fusion = std::get_if<Fusion>(&source)) {
    CompileOptions options;
    options.passes.skip = {"reuse_buffers"};  // the Free of a reused buffer has no effect
    example.program = compile(*fusion, ranks, options);
  } else {
    example.program = std::get<Program>(source);
  }
  for (const auto& [symbol, value] : example.program.size_defaults) {
    example.options.sizes[symbol] = std::min<int64_t>(value, 16);
  }
  return example;
}

std::vector<Example> examples() {
  std::vector<Example> list;
  for (const char* name : {"gelu_backward_bias_grad.fusion", "softmax.fusion", "layer_norm.fusion",
                           "swiglu.fusion", "tp_mlp.fusion", "in_place_loop.hostir"}) {
    list.push_back(exampleOf(name, 1));
  }
  list.push_back(exampleOf("tp_mlp.fusion", 2));
  list.push_back(exampleOf("ring_allgather.hostir", 3));
  return list;
}

// Removes the n-th instruction, counted from 0, for which `match` returns true. If there are fewer,
// subtracts their number from n and returns false.
template <class Match>
bool removeNth(std::vector<Instruction>& body, int& n, const Match& match, std::string& removed,
               const Program& program) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (match(body[i].op)) {
      if (n-- == 0) {
        removed = printInstruction(program, body[i]);
        body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    } else if (For* loop = std::get_if<For>(&body[i].op)) {
      if (removeNth(loop->body, n, match, removed, program)) return true;
    } else if (If* branch = std::get_if<If>(&body[i].op)) {
      if (removeNth(branch->then_body, n, match, removed, program)) return true;
      if (removeNth(branch->else_body, n, match, removed, program)) return true;
    }
  }
  return false;
}

bool isWait(const Op& op) {
  return std::holds_alternative<Wait>(op) || std::holds_alternative<WaitEvent>(op);
}

bool isWaitOrFree(const Op& op) { return isWait(op) || std::holds_alternative<Free>(op); }

// For each matching instruction, calls `use` with a copy of the program that lacks it. Returns the
// number of copies.
template <class Match, class Use>
int forEachRemoval(const Example& example, const Match& match, const Use& use) {
  int expected = 0;
  forEachInstruction(example.program.body, [&](const Instruction& x, InstructionIndex) {
    expected += match(x.op) ? 1 : 0;
  });
  for (int n = 0;; ++n) {
    Program program = example.program;
    int left = n;
    std::string removed;
    if (!removeNth(program.body, left, match, removed, example.program)) {
      EXPECT_EQ(n, expected) << example.name;
      return n;
    }
    EXPECT_EQ(countInstructions(program.body), countInstructions(example.program.body) - 1);
    use(program, removed);
  }
}

std::vector<std::string> removalsOf(const Example& example) {
  std::vector<std::string> all;
  forEachRemoval(example, isWaitOrFree,
                 [&](const Program&, const std::string& removed) { all.push_back(removed); });
  return all;
}

TEST(VerifyMissingSync, ExamplesContainTheRemovedInstructions) {
  EXPECT_EQ(removalsOf(exampleOf("ring_allgather.hostir", 3)),
            (std::vector<std::string>{"wait $hop stream=0", "wait_event !ready stream=1",
                                      "wait $hop stream=0", "free %buf stream=0"}));
  const std::vector<std::string> mlp = removalsOf(exampleOf("tp_mlp.fusion", 2));
  const auto count = [&](const std::string& start) {
    return std::count_if(mlp.begin(), mlp.end(),
                         [&](const std::string& text) { return text.starts_with(start); });
  };
  EXPECT_GE(count("wait $"), 1);
  EXPECT_GE(count("wait_event "), 1);
  EXPECT_GE(count("free "), 3);
}

TEST(VerifyMissingSync, EveryRemovedWaitAndFreeIsReported) {
  int removals = 0;
  for (const Example& example : examples()) {
    EXPECT_NO_THROW(verify(example.program)) << example.name;
    removals += forEachRemoval(
        example, isWaitOrFree, [&](const Program& program, const std::string& removed) {
          try {
            verify(program);
            ADD_FAILURE() << example.name << ": verify accepts the program without `" << removed
                          << "`";
          } catch (const UserError& error) {
            // A message is "instruction 7 `...`: ", followed by the reason.
            const std::string message = error.what();
            EXPECT_EQ(message.find("instruction "), 0u) << message;
            EXPECT_NE(message.find('`'), std::string::npos) << message;
          }
        });
  }
  EXPECT_GT(removals, 10);
}

// A program without a wait has a race. The thread sanitizer reports the race even if the result is
// right. With this sanitizer, the test therefore runs only complete programs.
#ifdef HEDDLE_SANITIZED_THREADS
constexpr bool kRacesMayRun = false;
#else
constexpr bool kRacesMayRun = true;
#endif

TEST(VerifyMissingSync, MissingWaitGivesAWrongResultUnderSomeOrder) {
  int removals = 0;
  for (const Example& example : examples()) {
    const std::vector<HostTensor> right = testing::runProgram(example.program, example.options);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      HarnessOptions options = example.options;
      options.cpu.adversarial_seed = seed;
      const auto got = testing::runProgram(example.program, options);
      for (size_t i = 0; i < right.size(); ++i) {
        ASSERT_EQ(testing::relativeError(got[i], right[i]), 0) << example.name << " seed " << seed;
      }
    }
    if (!kRacesMayRun) continue;
    removals +=
        forEachRemoval(example, isWait, [&](const Program& program, const std::string& removed) {
          bool wrong = false;
          for (uint64_t seed = 0; seed < 40 && !wrong; ++seed) {
            HarnessOptions options = example.options;
            options.verify = false;
            options.cpu.adversarial_seed = seed;
            const auto got = testing::runProgram(program, options);
            for (size_t i = 0; i < right.size(); ++i) {
              wrong = wrong || testing::relativeError(got[i], right[i]) != 0;
            }
          }
          EXPECT_TRUE(wrong) << example.name << ": no order of 40 shows that `" << removed
                             << "` is missing";
        });
  }
  EXPECT_GT(removals, kRacesMayRun ? 3 : -1);
}

}  // namespace
}  // namespace heddle::host::verify_missing_sync_cpu_test
