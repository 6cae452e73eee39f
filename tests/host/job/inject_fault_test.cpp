// Tests which faults --inject accepts, and its error messages.
#include "host/job/inject_fault.h"

#include <gtest/gtest.h>

#include "tests/host/executable_common.h"

namespace heddle::host::inject_fault_test {
namespace {

using testing::userErrorOf;

TEST(InjectFault, EveryKindIsParsed) {
  const InjectedFault die = parseFault("rank=2,instr=7,die");
  EXPECT_EQ(die.kind, InjectedFault::Kind::Die);
  EXPECT_EQ(die.rank, 2);
  EXPECT_EQ(die.instruction, 7);
  EXPECT_EQ(parseFault("throw,instr=0,rank=0").kind, InjectedFault::Kind::Throw);
  EXPECT_EQ(parseFault("rank=0,instr=0,stall").kind, InjectedFault::Kind::Stall);
  EXPECT_EQ(parseFault("rank=0,instr=0,corrupt").kind, InjectedFault::Kind::Corrupt);
  EXPECT_EQ(parseFault("rank=0,task=algorithms,stall").task, comm::RankTask::AgreeingOnAlgorithms);
  EXPECT_EQ(parseFault("rank=0,task=tune,stall").task, comm::RankTask::TuningKernels);
  const InjectedFault delay = parseFault("rank=0,instr=0,delay=0.25s");
  EXPECT_EQ(delay.kind, InjectedFault::Kind::Delay);
  EXPECT_EQ(delay.seconds, 0.25);
}

TEST(InjectFault, WrongFieldsAreReported) {
  const auto errorOf = [](const std::string& spec) {
    return userErrorOf([&] { parseFault(spec); });
  };
  const std::string kinds =
      "expected rank=R, instr=I, task=T, die, throw, stall, delay=5s or corrupt";
  EXPECT_EQ(errorOf(""), "--inject : found '', " + kinds);
  EXPECT_EQ(errorOf("rank=1,instr=2,explode"),
            "--inject rank=1,instr=2,explode: found 'explode', " + kinds);
  EXPECT_EQ(errorOf("rank=1,instr=2,die=3"),
            "--inject rank=1,instr=2,die=3: found 'die=3', " + kinds);
  EXPECT_EQ(errorOf("rank=1,instr=2,delay"),
            "--inject rank=1,instr=2,delay: found 'delay', " + kinds);
  EXPECT_EQ(errorOf("rank=x,instr=2,die"),
            "--inject rank=x,instr=2,die: rank=x is not a number of at least 0");
  EXPECT_EQ(errorOf("rank=1,instr=-2,die"),
            "--inject rank=1,instr=-2,die: instr=-2 is not a number of at least 0");
  EXPECT_EQ(errorOf("rank=1,instr=2,delay=5"),
            "--inject rank=1,instr=2,delay=5: delay=5 has no unit, write delay=5s");
  EXPECT_EQ(errorOf("rank=1,instr=2,die,throw"),
            "--inject rank=1,instr=2,die,throw: 'throw' is a second fault, expected one");
  EXPECT_EQ(errorOf("instr=2,die"), "--inject instr=2,die: rank=R is missing");
  EXPECT_EQ(errorOf("rank=2,die"), "--inject rank=2,die: instr=I or task=T is missing");
  EXPECT_EQ(errorOf("rank=2,instr=2,task=read,die"),
            "--inject rank=2,instr=2,task=read,die: instr=I and task=T, expected one");
  EXPECT_EQ(errorOf("rank=2,task=sleep,die"),
            "--inject rank=2,task=sleep,die: there is no task sleep");
  EXPECT_EQ(errorOf("rank=2,task=read,corrupt"),
            "--inject rank=2,task=read,corrupt: corrupt needs instr=I, because a task writes no "
            "tensor");
  EXPECT_EQ(errorOf("rank=2,instr=2"),
            "--inject rank=2,instr=2: die, throw, stall, delay=5s or corrupt is missing");
}

}  // namespace
}  // namespace heddle::host::inject_fault_test
