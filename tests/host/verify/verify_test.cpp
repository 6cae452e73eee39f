#include "host/verify/verify.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "host/text/program_text.h"
#include "host/verify/happens_before.h"
#include "ir/base/error.h"

namespace heddle::host::verify_test {
namespace {

std::string errorOf(const std::string& head, const std::string& body) {
  const Program program =
      parseProgram("heddle 1\nmesh @m = [x=ranks]\nprogram main" + head + " {\n" + body + "}\n");
  try {
    verify(program);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void failsWith(const std::string& head, const std::string& body, const std::string& expected) {
  const std::string error = errorOf(head, body);
  EXPECT_NE(error.find(expected), std::string::npos) << error;
}

constexpr const char* kSlots = "slot %a: f32[4]\nslot %b: f32[4]\n";
std::string with(const std::string& body) { return kSlots + body; }

TEST(VerifyProgram, WrongLifetimesAreReported) {
  const std::string x = "(%x: f32[4]) -> ()";
  EXPECT_EQ(errorOf(x, with("%a = allocate\ncopy %x -> %a\nfree %a\n")), "no error");
  failsWith(x, with("%a = allocate\n"),
            "instruction 0 `%a = allocate stream=0`: the buffer is neither");
  failsWith(x, with("%a = allocate\nfree %a\nfree %a\n"),
            "instruction 2 `free %a stream=0`: uses %a after");
  failsWith(x, with("%a = allocate\nfree %a\ncheck %a\n"), "instruction 2 `check %a");
  failsWith(x, "free %x\n", "frees the input %x");
  failsWith(x, with("%a = allocate\ncopy %a -> %x\nfree %a\n"), "writes to the input %x");
  failsWith("(%x: f32[4]) -> (%a)", with("%a = allocate\nfree %a\n"), "frees the output");
  EXPECT_EQ(errorOf("(%x: f32[4], %w: f32[4]) -> (%x)", "copy %w -> %x\n"), "no error");
}

TEST(VerifyProgram, KernelMustBeOneKernel) {
  const auto error = [](const std::string& body) -> std::string {
    try {
      verify(parseProgram("heddle 1\nkernel @k { fusion k(%a: f32[4, 4]) {\n" + body +
                          "return %c } }\nprogram main(%x: f32[4, 4]) -> (%y) {\n"
                          "slot %y: f32[4, 4]\n%y = allocate\nlaunch @k(%x) -> (%y)\n}\n"));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("%b = neg(%a)\n%c = exp(%b)\n"), "no error");
  EXPECT_NE(error("%b = matmul(%a, %a)\n%c = exp(%b)\n")
                .find("kernel @k is not one kernel: matmul of %b"),
            std::string::npos);
  EXPECT_NE(error("%c = softmax(%a)\n").find("kernel @k is not one kernel"), std::string::npos);
}

TEST(VerifyProgram, UnorderedStreamsAreReported) {
  const std::string x = "(%x: f32[4]) -> (%a)";
  failsWith(x, with("%a = allocate\ncopy %x -> %a stream=1\n"),
            "instruction 1 `copy %x -> %a stream=1`");
  const std::string ordered =
      "%a = allocate\n!e = record_event\nwait_event !e stream=1\ncopy %x -> %a stream=1\n";
  failsWith(x, with(ordered), "stream 1 is not ordered before the end of stream 0");
  EXPECT_EQ(errorOf(x, with(ordered + "!f = record_event stream=1\nwait_event !f stream=0\n")),
            "no error");
}

TEST(VerifyProgram, PostBorrowsItsBuffersUntilTheWait) {
  const std::string x = "(%x: f32[4]) -> (%a)";
  const std::string post = "%a = allocate\n$t = communicate allreduce %x -> %a op=sum\n";
  EXPECT_EQ(errorOf(x, with(post + "wait $t\ncheck %a\n")), "no error");
  failsWith(x, with(post + "check %a\nwait $t\n"), "borrowed by instruction 1");
  failsWith(x, with(post), "no wait orders stream 0 after it");
  failsWith(x, with("%a = allocate\nwait $t\n"), "nothing posts this token");
}

TEST(VerifyProgram, RunTimeBranchesAreChecked) {
  const std::string x = "(%x: f32[4], %n: i64 = 1) -> ()";
  failsWith(x, with("%a = allocate\nif %n > 0 { free %a }\n"), "in one of the branches only");
  EXPECT_EQ(errorOf(x, with("%a = allocate\nif %n > 0 { free %a } else { free %a }\n")),
            "no error");
  failsWith(x,
            with("%a = allocate\n$t = communicate allreduce %x -> %a op=sum\n"
                 "if %n > 0 { wait $t }\nfree %a\n"),
            "borrowed by");
  EXPECT_EQ(
      errorOf(x, with("%a = allocate\nif %n > 0 {\n"
                      "$t = communicate allreduce %x -> %a op=sum\nwait $t } else { check %x }\n"
                      "free %a\n")),
      "no error");
}

TEST(VerifyProgram, WrongStructureIsReported) {
  const std::string x = "(%x: f32[4], %s: f64) -> ()";
  failsWith(x, "check %s\n", "%s is a scalar, expected a tensor");
  failsWith(x, "slot %n: i64\n%n = evaluate i + 1\n", "i has no value here");
  failsWith(x, "for rank in 0 .. 2 { }\n", "another meaning");
  failsWith(x, "wait_event !e\n", "nothing records this event");
  failsWith(x, "group_begin\ncheck %x\n$t = group_end\n", "a group holds sends and receives");
  failsWith(x, "group_begin\nsend %x to=0\n", "without its group_end");
  failsWith(x, "send %x to=0\n", "outside of a group it needs a token");
  failsWith(x, "if %s > 0 { }\n", "a predicate needs i64 or bool");
  failsWith(x, "$t = communicate allreduce %x -> %x\nwait $t\n", "needs op=");
}

// --- what the ranks post ------------------------------------------------------------------------

std::string errorOfPosts(const std::string& body, const ActualJob& job = {2, SizeBindings{}},
                         const std::string& mesh = "[x=ranks]") {
  try {
    verify(
        parseProgram("heddle 1\nmesh @m = " + mesh +
                     "\nprogram main(%x: f32[4], %w: f32[4], %d: f16[4], %l: f32[8], %s: i64 = 1) "
                     "-> (%y, %z, %o) with n = 24 {\nslot %y: f32[4]\nslot %z: f32[4]\n"
                     "slot %o: f32[n]\nslot %e: f16[4]\nslot %b: f32[8]\nslot %p: f32[12]\n"
                     "%y = allocate\n%z = allocate\n%o = allocate\n%e = allocate\n"
                     "%b = allocate\n%p = allocate\n" +
                     body + "free %e\nfree %b\nfree %p\n}\n"),
        job);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string posted(const std::string& what) {
  return "$t = communicate " + what + " team=@m\nwait $t\n";
}
std::string moved(const std::string& what) { return "$t = " + what + " team=@m\nwait $t\n"; }
std::string onRank0(const std::string& then, const std::string& otherwise) {
  return "if rank == 0 {\n" + then + "} else {\n" + otherwise + "}\n";
}
void differs(const std::string& body, const std::string& expected) {
  const std::string error = errorOfPosts(body);
  EXPECT_NE(error.find(expected), std::string::npos) << body << error;
}

const std::string kSum = "$t = communicate allreduce %x -> %y team=@m op=sum\nwait $t\n";

TEST(MatchCollectives, DifferentCollectivesAreReported) {
  const std::string max = "$t = communicate allreduce %x -> %y team=@m op=max\nwait $t\n";
  EXPECT_EQ(errorOfPosts(onRank0(kSum + max, kSum + max)), "no error");
  EXPECT_EQ(errorOfPosts(onRank0(kSum, max)),
            "team [0, 1]: rank 0 posts allreduce(sum) of 4 f32, instruction 7 `$t = communicate "
            "allreduce %x -> %y team=@m op=sum stream=0`, where rank 1 posts allreduce(max) of 4 "
            "f32, instruction 9 `$t = communicate allreduce %x -> %y team=@m op=max stream=0` (in "
            "a job of 2 rank(s))");
  differs(onRank0(kSum + posted("barrier"), posted("barrier") + kSum),
          "rank 0 posts allreduce(sum) of 4 f32, instruction 7 ");
  differs(onRank0(kSum, "$t = communicate allreduce %d -> %e team=@m op=sum\nwait $t\n"),
          "where rank 1 posts allreduce(sum) of 4 f16, instruction 9 ");
  differs(onRank0(kSum, "$t = communicate allreduce %l -> %b team=@m op=sum\nwait $t\n"),
          "where rank 1 posts allreduce(sum) of 8 f32, instruction 9 ");
  differs(onRank0("$t = communicate broadcast %x -> %y team=@m root=0\nwait $t\n",
                  "$t = communicate broadcast %x -> %y team=@m root=1\nwait $t\n"),
          "posts broadcast of 4 f32 from 0, instruction 7 ");
  differs(
      "if rank == 1 {\n" + kSum + "}\n",
      "rank 1 posts allreduce(sum) of 4 f32, instruction 7 `$t = communicate allreduce %x -> %y "
      "team=@m op=sum stream=0`, where rank 0 posts nothing more");
  differs("for i in 0 .. 5 - rank {\n" + kSum + "}\n", "where rank 1 posts nothing more");
}

TEST(MatchCollectives, DifferentOrdersOfEqualCollectivesAreReported) {
  const std::string first = "$t = communicate broadcast %x -> %y team=@m root=0\nwait $t\n";
  const std::string second = "$t = communicate broadcast %w -> %z team=@m root=0\nwait $t\n";
  EXPECT_EQ(errorOfPosts(onRank0(first + second, first + second)), "no error");
  differs(onRank0(first + second, second + first), ": the same collectives in another order (in");
  EXPECT_EQ(errorOfPosts(onRank0(first, second)), "no error");  // meant so, for all one can tell
}

TEST(MatchCollectives, EveryTeamOfAnAxisIsChecked) {
  const std::string sum = "$t = communicate allreduce %x -> %y team=@m[x] op=sum\nwait $t\n";
  EXPECT_EQ(errorOfPosts("if rank > 1 {\n" + sum + "}\n", {4, {}}, "[y=2, x=2]"), "no error");
  const std::string error = errorOfPosts("if rank > 2 {\n" + sum + "}\n", {4, {}}, "[y=2, x=2]");
  EXPECT_EQ(error.rfind("team [2, 3]: rank 3 posts allreduce(sum) of 4 f32", 0), 0u) << error;
}

TEST(MatchCollectives, SendsAndReceivesMustPairUp) {
  const std::string send = moved("send %x to=1"), recv = moved("recv %y from=0");
  EXPECT_EQ(errorOfPosts(onRank0(send, recv)), "no error");
  EXPECT_EQ(errorOfPosts("group_begin\nsend %x to=(rank + 1) % ranks team=@m\n"
                         "recv %y from=(rank + ranks - 1) % ranks team=@m\n$t = group_end\n"
                         "wait $t\n",
                         {3, SizeBindings{}}),
            "no error");
  differs(onRank0(send, ""),
          "to 1, instruction 7 `$t = send %x to=1 team=@m stream=0`, which rank 1 "
          "never receives (in a job of 2 rank(s))");
  differs(onRank0(send + send, recv), "instruction 9 `$t = send %x to=1 team=@m stream=0`, which");
  differs(onRank0("", recv),
          "rank 1 posts recv of 4 f32 from 0, instruction 7 `$t = recv %y from=0 "
          "team=@m stream=0`, which rank 0 never sends");
  differs(onRank0(send, moved("recv %b from=0")), "where rank 1 posts recv of 8 f32 from 0");
  differs(onRank0(send, moved("recv %e from=0")), "where rank 1 posts recv of 4 f16 from 0");
  // One instruction with both ends is a send and a receive.
  const std::string both = "$t = communicate send %x -> %y team=@m root=0\nwait $t\n";
  EXPECT_EQ(errorOfPosts(onRank0(both, recv)), "no error");
  differs(onRank0(both, ""), "which rank 1 never receives");
}

TEST(MatchCollectives, DataDependentPostsAreNotCompared) {
  const std::string branch = "if %s > 0 {\n" + kSum + "}\n";
  EXPECT_EQ(errorOfPosts(onRank0(branch, kSum) + kSum), "no error");
  EXPECT_EQ(errorOfPosts(onRank0("if %s > 0 { check %x } else {\n" + kSum + "}\n", "")),
            "no error");
  EXPECT_EQ(errorOfPosts(onRank0("if %s > 0 {\n" + moved("send %x to=1") + "}\n", "")), "no error");
  differs(onRank0("if %s > 0 { check %x }\n" + kSum, ""), "where rank 1 posts nothing more");
  differs(onRank0(branch + kSum, moved("send %x to=0")), "which rank 0 never receives");
  differs(onRank0(kSum + branch, ""), "where rank 1 posts nothing more");
}

TEST(MatchCollectives, SizeOfTheActualJobIsUsed) {
  const std::string gather = posted("allgather %p -> %o");  // 12 elements to 24
  EXPECT_EQ(errorOfPosts(gather, {2, SizeBindings{}}), "no error");
  EXPECT_NE(errorOfPosts(gather, {3, SizeBindings{}}).find("in a team of 3: 12 "),
            std::string::npos);
  EXPECT_EQ(errorOfPosts(gather, {3, SizeBindings{{"n", 36}}}), "no error");
  EXPECT_NE(errorOfPosts(gather, {}).find("in a team of 1"), std::string::npos);
  const std::string pair = onRank0(moved("send %x to=1"), moved("recv %y from=0"));
  EXPECT_EQ(errorOfPosts(pair), "no error");
  // Not known: from the first job that has the rank on.
  EXPECT_NE(errorOfPosts(pair, {}).find("rank 2 posts recv of 4 f32 from 0"), std::string::npos);
  EXPECT_EQ(errorOfPosts(kSum, {}, "[x=100]"), "no error");  // as many as the mesh has
  EXPECT_NE(errorOfPosts(moved("send %x to=rank + 5"), {3, {}}).find("in a team of 3"),
            std::string::npos);
}

TEST(MatchCollectives, PostSetMatchesAStandardSet) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    PostSet sets[2];
    std::set<int32_t> expected[2];
    for (int i = 0; i < 30; ++i) {
      const auto first = static_cast<int32_t>(random() % 60);
      const auto last = first + static_cast<int32_t>(random() % 4);
      sets[i % 2].add(first, last);
      for (int32_t post = first; post < last; ++post) expected[i % 2].insert(post);
    }
    PostSet all = sets[0], common = sets[0];
    all.join(sets[1]);
    common.meet(sets[1]);
    for (int32_t post = 0; post < 64; ++post) {
      const bool a = expected[0].count(post) > 0, b = expected[1].count(post) > 0;
      ASSERT_EQ(sets[0].has(post), a) << post;
      ASSERT_EQ(all.has(post), a || b) << post;
      ASSERT_EQ(common.has(post), a && b) << post;
    }
  }
}

}  // namespace
}  // namespace heddle::host::verify_test
