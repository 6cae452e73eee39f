// Small collectives in one post: which are joined, and which never.
#include <gtest/gtest.h>

#include <sstream>

#include "host/passes/pipeline.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"

namespace heddle::host::coalesce_test {
namespace {

using Posts = std::vector<std::string>;

constexpr const char* kHead = R"(heddle 1
mesh @m = [y=2, x=2]
kernel @k {
  fusion k(%a: f32[t]) {
    %b = relu(%a)
    return %b
  }
}
program main(%x: f32[t], %w: f32[t], %n: i64) -> (%a, %b, %c) with t = 8 {
  slot %a: f32[t]
  slot %b: f32[t]
  slot %c: f32[t]
  slot %d: f32[t]
  slot %g: f32[t]
  slot %h: f32[t]
  slot %half: f32[4]
  slot %rest: f32[4]
  slot %e: f32[4]
  slot %f: f32[4]
  slot %all: f32[2, t]
  slot %more: f32[2, t]
  %a = allocate
  %b = allocate
  %c = allocate
)";

// What each post of a program moves after its passes.
Posts postsOf(const std::string& body, const PassOptions& options = {}) {
  const Program program = runPasses(parseProgram(kHead + body + "}\n"), options);
  EXPECT_NO_THROW(verify(program));
  EXPECT_TRUE(sameProgram(parseProgram(print(program)), program)) << print(program);
  Posts posts;
  std::istringstream lines(print(program));
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("communicate ");
    if (at == std::string::npos) continue;
    const size_t from = at + std::string("communicate ").size();
    posts.push_back(line.substr(from, line.find(" team") - from));
  }
  return posts;
}

// A sum of %x in %a that is waited for at once, `between`, then another collective.
std::string pair(const std::string& between, const std::string& second,
                 const std::string& first = "allreduce %x -> %a team=@m[x] op=sum") {
  return "  $t = communicate " + first + "\n  wait $t\n" + between + "  $u = communicate " +
         second + "\n  wait $u\n";
}

const std::string kSecond = "allreduce %w -> %b team=@m[x] op=sum";
const std::string kFillC = "  launch @k(%x) -> (%c)\n";
const Posts kJoined = {"allreduce %x -> %a, %w -> %b"};
const Posts kApart = {"allreduce %x -> %a", "allreduce %w -> %b"};

TEST(CoalesceCollectives, NeighboursShareOnePost) {
  EXPECT_EQ(postsOf(pair("", kSecond)), kJoined);
  EXPECT_EQ(postsOf(pair(kFillC, kSecond)), kJoined);
  EXPECT_EQ(postsOf(pair("", "allgather %w -> %more team=@m[x]", "allgather %x -> %all team=@m[x]")
                        .insert(0, "  %all = allocate\n  %more = allocate\n")),
            Posts{"allgather %x -> %all, %w -> %more"});
  // What is of another team is no obstacle, and joins its own.
  EXPECT_EQ(postsOf(R"(
  %d = allocate
  %g = allocate
  launch @k(%x) -> (%g)
  %h = allocate
  launch @k(%w) -> (%h)
  $p = communicate allreduce %x -> %a team=@m[x] op=sum
  wait $p
  $q = communicate allreduce %g -> %c team=@m[y] op=sum
  wait $q
  $r = communicate allreduce %w -> %b team=@m[x] op=sum
  wait $r
  $s = communicate allreduce %h -> %d team=@m[y] op=sum
  wait $s
)"),
            (Posts{"allreduce %x -> %a, %w -> %b", "allreduce %g -> %c, %h -> %d"}));
}

// The second sends %c, which is made only after `between`.
Posts postsAround(const std::string& between) {
  return postsOf(pair(between + kFillC, "allreduce %c -> %b team=@m[x] op=sum"));
}

TEST(CoalesceCollectives, DependentCollectivesStaySeparate) {
  const Posts apart = {"allreduce %x -> %a", "allreduce %c -> %b"};
  EXPECT_EQ(postsAround("  print %w\n"), Posts{"allreduce %x -> %a, %c -> %b"});
  // The result is read, by its name, through a view or in a branch, before the second.
  EXPECT_EQ(postsAround("  print %a\n"), apart);
  EXPECT_EQ(postsAround("  %half = alias %a slice starts=[0] stops=[4]\n  print %half\n"), apart);
  EXPECT_EQ(postsAround("  if %n > 0 {\n    print %a\n  }\n"), apart);
  // The second sends, or writes, what the first makes, or writes what the first sends.
  EXPECT_EQ(postsOf(pair("", "allreduce %a -> %b team=@m[x] op=sum")),
            (Posts{"allreduce %x -> %a", "allreduce %a -> %b"}));
  EXPECT_EQ(postsOf(pair("", "allreduce %w -> %a team=@m[x] op=sum")),
            (Posts{"allreduce %x -> %a", "allreduce %w -> %a"}));
  EXPECT_EQ(postsOf(kFillC + pair("", "allreduce %w -> %c team=@m[x] op=sum",
                                  "allreduce %c -> %a team=@m[x] op=sum")),
            (Posts{"allreduce %c -> %a", "allreduce %w -> %c"}));
}

TEST(CoalesceCollectives, ReusedBuffersAndSlotsStaySeparate) {
  // What is sent is filled anew for the second.
  EXPECT_EQ(
      postsOf(kFillC + pair("  launch @k(%w) -> (%c)\n", "allreduce %c -> %b team=@m[x] op=sum",
                            "allreduce %c -> %a team=@m[x] op=sum")),
      (Posts{"allreduce %c -> %a", "allreduce %c -> %b"}));
  // The name of the first's operand is another buffer's by then.
  EXPECT_EQ(
      postsOf("  %d = allocate\n  launch @k(%x) -> (%d)\n" +
              pair("  free %d\n  %d = allocate\n  launch @k(%w) -> (%d)\n",
                   "allreduce %d -> %b team=@m[x] op=sum", "allreduce %d -> %a team=@m[x] op=sum")),
      (Posts{"allreduce %d -> %a", "allreduce %d -> %b"}));
  // Pieces of one buffer are apart on purpose.
  EXPECT_EQ(postsOf(R"(
  %half = alias %x slice starts=[0] stops=[4]
  %rest = alias %x slice starts=[4] stops=[8]
  %e = allocate
  %f = allocate
)" + pair("", "allreduce %rest -> %f team=@m[x] op=sum",
          "allreduce %half -> %e team=@m[x] op=sum")),
            (Posts{"allreduce %half -> %e", "allreduce %rest -> %f"}));
}

TEST(CoalesceCollectives, DifferentCollectivesStaySeparate) {
  for (const char* second :
       {"allreduce %w -> %b team=@m[y] op=sum", "allreduce %w -> %b team=@m[x] op=max",
        "allreduce %w -> %b team=@m op=sum", "reduce %w -> %b team=@m[x] op=sum root=0"}) {
    EXPECT_EQ(postsOf(pair("", second)).size(), 2u) << second;
  }
  EXPECT_EQ(postsOf(pair("", "broadcast %w -> %b team=@m[x] root=1",
                         "broadcast %x -> %a team=@m[x] root=0"))
                .size(),
            2u);
  EXPECT_EQ(postsOf("  if %n > 0 {\n    wait $t\n  }\n" + pair("", kSecond)), kApart);
  EXPECT_EQ(postsOf(pair("  wait $t\n", kSecond)), kApart);
}

TEST(CoalesceCollectives, LargeCollectivesStaySeparate) {
  PassOptions options;
  options.chunk_sizes = {{"t", (int64_t{1} << 18)}};  // 1 MiB
  EXPECT_EQ(postsOf(pair("", kSecond), options), kJoined);
  options.chunk_sizes = {{"t", (int64_t{1} << 18) + 1}};
  EXPECT_EQ(postsOf(pair("", kSecond), options), kApart);
}

TEST(CoalesceCollectives, NoOverlapLeavesTheProgramUnchanged) {
  PassOptions off;
  off.overlap = false;
  EXPECT_EQ(postsOf(pair("", kSecond), off), kApart);
}

TEST(CoalesceCollectives, OverlappingPartsOfAGroupAreRefused) {
  const auto rejected = [](const std::string& post) {
    const std::string text = kHead + ("  $t = communicate " + post) + "\n  wait $t\n}\n";
    try {
      verify(runPasses(parseProgram(text)));
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(rejected("allreduce %x -> %a, %w -> %a team=@m[x] op=sum")
                .find("part 0 of the group writes to memory of part 1"),
            std::string::npos);
  EXPECT_NE(rejected("allreduce %x -> %a, %a -> %b team=@m[x] op=sum")
                .find("part 0 of the group writes to memory of part 1"),
            std::string::npos);
  EXPECT_NE(rejected("allreduce %x -> %a, %w -> %half team=@m[x] op=sum").find("%half"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::host::coalesce_test
