// What verify() refuses of collectives, one by one, and how they print.
#include <gtest/gtest.h>

#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"

namespace heddle::host::collectives_test {
namespace {

std::string errorOf(const std::string& body) {
  try {
    verify(
        parseProgram("heddle 1\nmesh @m = [y=2, x=2]\n"
                     "program main(%x: f32[4, 8], %i: i64[4], %k: i64[2]) -> () {\n"
                     "slot %y: f32[4, 8]\nslot %w: f32[16, 8]\nslot %v: f32[4, 32]\n"
                     "slot %t: f32[4, 8] stride_order=[1, 0]\nslot %u: f32[1, 32]\n"
                     "slot %z: f32[16, 2]\nslot %c: list i64[4]\n"
                     "slot %d: list i64[2]\nslot %n: i64\nslot %j: i32[4]\n" +
                     body + "}\n"));
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void failsWith(const std::string& body, const std::string& expected) {
  const std::string error = errorOf(body);
  EXPECT_NE(error.find(expected), std::string::npos) << body << error;
}

// The operands of a post to the whole mesh, with what is made and given back around it.
std::string posted(const std::string& post) {
  std::string text, after;
  for (const char* slot : {"%y", "%w", "%v", "%t", "%u", "%z"}) {
    if (post.find(slot) == std::string::npos) continue;
    text += std::string(slot) + " = allocate\n";
    after += std::string("free ") + slot + "\n";
  }
  return text + "$p = communicate " + post + "\nwait $p\n" + after;
}

TEST(VerifyCollectives, EachKindChecksItsArguments) {
  EXPECT_EQ(errorOf(posted("broadcast %x -> %y team=@m root=3")), "no error");
  EXPECT_EQ(errorOf(posted("reduce %x -> %y team=@m[x] op=max root=1")), "no error");
  EXPECT_EQ(errorOf(posted("gather %x -> %w team=@m root=0")), "no error");
  EXPECT_EQ(errorOf(posted("scatter %w -> %y team=@m root=0")), "no error");
  EXPECT_EQ(errorOf(posted("all_to_all %x -> %y team=@m")), "no error");
  EXPECT_EQ(errorOf(posted("send %x -> %y team=@m[x] root=1")), "no error");
  EXPECT_EQ(errorOf(posted("allgather %x -> %w team=@m ctas=8")), "no error");
  EXPECT_EQ(errorOf(posted("allgather %x -> %w team=@m ctas=8 lane=2")), "no error");
  failsWith(posted("allgather %x -> %w team=@m lane=5"), "lane=5 is not in 1 .. 4");
  failsWith(posted("all_to_all %w -> %z team=@m lane=1"),
            "lane= is for allreduce, allgather and reduce_scatter");
  failsWith(posted("allgather %x -> %w team=@m ctas=65"), "ctas=65 is not in 1 .. 64");
  EXPECT_EQ(errorOf("$p = communicate barrier team=@m[y]\nwait $p\n"), "no error");
  failsWith(posted("send %x -> %y team=@m[x]"), "send needs root=");
  failsWith(posted("send %x -> %y team=@m root=1"), "send in a team of 4: it is for two ranks");
  failsWith(posted("recv %x -> %y team=@m[x] root=1"), "recv is an instruction of its own");
  failsWith(posted("\"broadcast\" %x -> %y team=@m root=1"),
            "found \"broadcast\", expected allreduce, reduce");
  failsWith(posted("broadcast %x -> %y team=@m"), "broadcast needs root=");
  failsWith(posted("allgather %x -> %w team=@m root=0"), "allgather has no root: no root=");
  failsWith(posted("broadcast %x -> %y team=@m op=sum root=0"), "reduces nothing: no op=");
  failsWith(posted("reduce %x -> %y team=@m root=0"), "reduce needs op=");
  failsWith(posted("all_to_all_v %x -> %y team=@m"), "needs send_counts= and recv_counts=");
  failsWith(posted("all_to_all %x -> %y team=@m send_counts=%c"), "has equal parts");
  failsWith(posted("all_to_all_v %x -> %y team=@m send_counts=%n recv_counts=%n"), "%n is no list");
}

TEST(VerifyCollectives, RootsMustBeRanksOfTheTeam) {
  failsWith(posted("broadcast %x -> %y team=@m[x] root=2"), "root 2 = 2 in a team of 2");
  failsWith(posted("broadcast %x -> %y team=@m root=0 - 1"), "in a team of 4");
  failsWith(posted("broadcast %x -> %y team=@m root=i"), "i has no value here");
  // The ranks of a team must mean the same one: a transport may wait forever else.
  failsWith(posted("broadcast %x -> %y team=@m root=rank"),
            "root=rank: rank is not the same on all ranks of the team");
  failsWith(posted("broadcast %x -> %y team=@m[x] root=@m.x.index"), "@m.x.index is not the same");
  failsWith(posted("broadcast %x -> %y team=@m root=@m.y.index"), "@m.y.index is not the same");
  EXPECT_EQ(errorOf(posted("broadcast %x -> %y team=@m[x] root=@m.y.index")), "no error");
}

TEST(VerifyCollectives, WrongSizesAreReported) {
  failsWith(posted("broadcast %x -> %w team=@m root=0"), "32 allocated elements to 128");
  failsWith(posted("gather %x -> %y team=@m root=0"), "gather in a team of 4: 32 allocated");
  failsWith(posted("scatter %x -> %y team=@m root=0"), "scatter in a team of 4: 32 allocated");
  failsWith(posted("all_to_all %x -> %w team=@m"), "all_to_all in a team of 4: 32 allocated");
  failsWith("slot %o: f32[5]\n%o = allocate\n$p = communicate scatter %o -> %o team=@m root=0\n",
            "5 allocated elements are no whole parts");
}

// Where no rank sees both sides, their types tell.
TEST(VerifyCollectives, SizesAreCheckedAcrossRanks) {
  const auto error = [](const std::string& out, const std::string& post) -> std::string {
    try {
      verify(parseProgram(
          "heddle 1\nmesh @a = [x=2] ranks=[0, 1]\nmesh @b = [x=1] ranks=[2]\n"
          "mesh @both = [x=3]\nmesh @pair = [x=2] ranks=[0, 2]\n"
          "program main(%x: f32[9, 8] shard(@a, 0: x), %w: f32[9, 8] shard(@b)) -> () {\n"
          "slot %y: " +
          out + "\non @b: %y = allocate\n" + post + "on @b: free %y\n}\n"));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string gather = "$p = communicate gather %x -> %y team=@both root=2\nwait $p\n";
  EXPECT_EQ(error("f32[9, 8] shard(@b) alloc=[10, 8]", gather), "no error");
  EXPECT_NE(error("f32[9, 8] shard(@b)", gather)
                .find("gather in a team of 3: 40 allocated elements to 72"),
            std::string::npos);
  EXPECT_NE(error("f32[12, 8] shard(@b)", gather)
                .find("gather in a team of 3: 40 allocated elements to 96"),
            std::string::npos);
  const std::string send =
      "on @pair: $p = communicate send %x -> %y team=@pair root=0\non @pair: wait $p\n";
  EXPECT_EQ(error("f32[5, 8] shard(@b)", send), "no error");
  EXPECT_NE(
      error("f32[9, 8] shard(@b)", send).find("send in a team of 2: 40 allocated elements to 72"),
      std::string::npos);
}

TEST(VerifyCollectives, WrongMemoryOrdersAreReported) {
  failsWith(posted("allgather %x -> %v team=@m"), "along axis 1, which is not outermost in memory");
  failsWith(posted("broadcast %x -> %t team=@m root=0"), "different orders in memory");
  failsWith(posted("allreduce %x -> %t team=@m op=sum"), "different orders in memory");
  // Rows to ranks and columns from them is right as it lies; the other way round is not.
  EXPECT_EQ(errorOf(posted("all_to_all %x -> %u team=@m")), "no error");
  failsWith(posted("all_to_all %x -> %z team=@m"), "along axis 1, which is not outermost");
  failsWith(posted("all_to_all %x -> %t team=@m"), "a part lies in different orders");
}

TEST(VerifyCollectives, OverlappingBuffersAreReported) {
  failsWith("%y = allocate\n$p = communicate all_to_all %y -> %y team=@m\nwait $p\nfree %y\n",
            "of the same buffer");
  const std::string rows =
      "slot %a: f32[4, 8]\n%w = allocate\n%a = alias %w slice starts=[FROM, 0] stops=[FROM + 4, "
      "8]\n"
      "$p = communicate allgather %a -> %w team=@m\nwait $p\nfree %w\n";
  const auto from = [&](const std::string& row) {
    std::string text = rows;
    for (size_t at; (at = text.find("FROM")) != std::string::npos;) text.replace(at, 4, row);
    return text;
  };
  EXPECT_EQ(errorOf(from("4 * (2 * @m.y.index + @m.x.index)")), "no error");
  failsWith(from("0"), "of the same buffer");
}

TEST(VerifyCollectives, WrongCountListsAreReported) {
  const std::string filled = "%c = read_back %i\n";
  const std::string post = posted("all_to_all_v %x -> %y team=@m send_counts=%c recv_counts=%c");
  EXPECT_EQ(errorOf(filled + post), "no error");
  failsWith(post, "%c is used before it is defined");
  failsWith("%c = read_back %k\n", "%k of [2] is not 4 elements");
  failsWith("%j = allocate\n%c = read_back %j\nfree %j\n", "the list %c is i64, %j is i32");
  failsWith(
      "%d = read_back %k\n" + posted("all_to_all_v %x -> %y team=@m send_counts=%d recv_counts=%d"),
      "%d has 2 counts for a team of 4");
  failsWith("%c = evaluate 1\n", "%c is a list, expected a scalar");
  failsWith(filled + "print %c\n", "%c is a list, which is not printed");
  failsWith("check %c\n", "%c is a scalar, expected a tensor");
  failsWith("slot %bad: list f32[4]\n", "a list is a host value of type i64[SIZE]");
  EXPECT_THROW(parseProgram("heddle 1\nprogram p(%x: f32[4]) -> (%x) {\nslot %l: list i64\n}\n"),
               UserError);
  EXPECT_THROW(verify(parseProgram("heddle 1\nprogram p(%l: list i64[4]) -> () {\n}\n")),
               UserError);
}

// A rank that has no part of a rooted operation may leave its slot unallocated, the root may not.
TEST(VerifyCollectives, OnlyTheRootNeedsItsBuffer) {
  const std::string gather = "$p = communicate gather %x -> %w team=@m root=2\nwait $p\n";
  EXPECT_EQ(errorOf("if 2 * @m.y.index + @m.x.index == 2 {\n%w = allocate\n}\n" + gather +
                    "if 2 * @m.y.index + @m.x.index == 2 {\nfree %w\n}\n"),
            "no error");
  failsWith("if 2 * @m.y.index + @m.x.index == 1 {\n%w = allocate\n}\n" + gather +
                "if 2 * @m.y.index + @m.x.index == 1 {\nfree %w\n}\n",
            "%w is used before it is defined");
  // Where a rank takes no part its side is free for other uses meanwhile.
  EXPECT_EQ(errorOf("%w = allocate\n$p = communicate gather %x -> %w team=@m root=2\n"
                    "if 2 * @m.y.index + @m.x.index != 2 {\ncheck %w\n}\nwait $p\nfree %w\n"),
            "no error");
  failsWith(
      "%w = allocate\n$p = communicate gather %x -> %w team=@m root=2\n"
      "if 2 * @m.y.index + @m.x.index == 2 {\ncheck %w\n}\nwait $p\nfree %w\n",
      "borrowed by instruction 1");
}

TEST(VerifyCollectives, TextRoundTrips) {
  const std::string text =
      "heddle 1\nmesh @m = [x=4]\nprogram p(%x: f32[8], %i: i64[4]) -> (%x) {\n"
      "  slot %c: list i64[4]\n"
      "  $a = communicate broadcast %x -> %x team=@m[x] root=1 stream=2\n"
      "  $a = communicate reduce %x -> %x team=@m op=min root=3 stream=0\n"
      "  $a = communicate gather %x -> %x root=0 stream=0\n"
      "  $a = communicate scatter %x -> %x team=@m root=0 stream=0\n"
      "  $a = communicate all_to_all %x -> %x team=@m stream=1\n"
      "  $a = communicate all_to_all_v %x -> %x team=@m send_counts=%c recv_counts=%c stream=0\n"
      "  $a = communicate barrier team=@m stream=0\n"
      "  $a = communicate barrier stream=3\n"
      "  %c = read_back %i stream=0\n}\n";
  EXPECT_EQ(print(parseProgram(text)), text);
  EXPECT_THROW(parseProgram("heddle 1\nprogram p() -> () {\n$a = communicate juggle\n}\n"),
               UserError);
}

}  // namespace
}  // namespace heddle::host::collectives_test
