#include "host/verify.h"

#include <gtest/gtest.h>

#include "host/text.h"
#include "ir/error.h"

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

TEST(HostVerify, Lifetimes) {
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

TEST(HostVerify, AKernelIsOneKernel) {
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

TEST(HostVerify, StreamsNeedAnOrder) {
  const std::string x = "(%x: f32[4]) -> (%a)";
  failsWith(x, with("%a = allocate\ncopy %x -> %a stream=1\n"),
            "instruction 1 `copy %x -> %a stream=1`");
  const std::string ordered =
      "%a = allocate\n!e = record_event\nwait_event !e stream=1\ncopy %x -> %a stream=1\n";
  failsWith(x, with(ordered), "stream 1 is not ordered before the end of stream 0");
  EXPECT_EQ(errorOf(x, with(ordered + "!f = record_event stream=1\nwait_event !f stream=0\n")),
            "no error");
}

TEST(HostVerify, APostBorrowsUntilItsWait) {
  const std::string x = "(%x: f32[4]) -> (%a)";
  const std::string post = "%a = allocate\n$t = communicate allreduce %x -> %a op=sum\n";
  EXPECT_EQ(errorOf(x, with(post + "wait $t\ncheck %a\n")), "no error");
  failsWith(x, with(post + "check %a\nwait $t\n"), "borrowed by instruction 1");
  failsWith(x, with(post), "no wait orders stream 0 after it");
  failsWith(x, with("%a = allocate\nwait $t\n"), "nothing posts this token");
}

TEST(HostVerify, BranchesDecidedAtRunTime) {
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

TEST(HostVerify, Structure) {
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

}  // namespace
}  // namespace heddle::host::verify_test
