// Tests `heddle run` with --inject and --trace, with ranks in one process. tests/mpi_losses.sh
// tests several processes.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ir/base/check.h"
#include "tests/tools/cli.h"

namespace heddle::tools::run_job_faults_cpu_test {
namespace {

using Json = nlohmann::json;

// Instruction 1 is a copy, instruction 5 is the allreduce that all ranks wait for, and instructions
// 8 and 9 are in a loop.
const char* const kSum =
    "heddle 1\n"
    "mesh @m = [x=ranks]\n"
    "program sum(%x: f32[n]) -> (%y) with n = 64 {\n"
    "  slot %a: f32[n]\n"
    "  slot %b: f32[n]\n"
    "  slot %y: f32[n]\n"
    "  %a = allocate stream=0\n"
    "  copy %x -> %a stream=0\n"
    "  %y = allocate stream=0\n"
    "  !e = record_event stream=0\n"
    "  wait_event !e stream=1\n"
    "  $t = communicate allreduce %a -> %y team=@m[x] op=sum stream=1\n"
    "  wait $t stream=0\n"
    "  for i in 0 .. 3 {\n"
    "    copy %y -> %a stream=0\n"
    "    copy %a -> %y stream=0\n"
    "  }\n"
    "  free %a stream=0\n"
    "}\n";

class RunJobFaults : public Cli {
 protected:
  std::string run(const std::string& rest) {
    return "run " + write("sum.hostir", kSum) + " --device cpu --ranks 3 " + rest;
  }
  // Requires exit code 2 and one message that has all the parts.
  void expectEnd(const std::string& rest, const std::vector<std::string>& parts) {
    const CliResult result = heddle(run(rest));
    EXPECT_EQ(result.code, 2) << rest << "\n" << result.text;
    for (const std::string& part : parts) {
      EXPECT_NE(result.text.find(part), std::string::npos) << "no '" << part << "' in\n"
                                                           << result.text;
    }
    EXPECT_EQ(result.text.find("heddle: "), result.text.rfind("heddle: ")) << result.text;
  }
  Json trace(const std::string& command, const std::string& name) {
    const std::string path = (folder_ / name).string();
    const CliResult result = heddle(command + " --trace " + path);
    EXPECT_EQ(result.code, 0) << result.text;
    std::ifstream file(path);
    return Json::parse(file).at("traceEvents");
  }
};

TEST_F(RunJobFaults, OneMessageNamesRankInstructionAndReason) {
  const std::string copy = "instruction 1 (copy %x -> %a stream=0)";
  for (const std::string kind : {"throw", "die"}) {
    expectEnd(
        "--inject rank=2,instr=1," + kind,
        {"sum.hostir:8: " + copy + ": injected: " + kind, "heddle: rank 2: ", "\n  rank 0 (pid ",
         "\n  rank 1 (pid ", "\n  rank 2 (pid ", "failed, in run 1 at " + copy});
  }
  expectEnd("--inject rank=2,instr=1,stall --patience 0.5",
            {"heddle: rank 2 is lost in run 1 computing at " + copy,
             ": nothing has moved on any rank for 0.5 s, and others wait\n",
             ", in run 1 communicating at instruction 5 ("});
  EXPECT_EQ(heddle(run("")).code, 0) << "the next job";
}

TEST_F(RunJobFaults, RankThatStaysAwayOutsideOfARunEndsTheJob) {
  const std::pair<const char*, const char*> tasks[] = {
      {"programs", "before its first run, while it compares its program with the other ranks"},
      {"communicators", "before its first run, while it creates communicators"},
      {"outputs", "after its last run, 2, while it collects the outputs of all ranks"},
      {"leave", "after its last run, 2, while it leaves its job"},
  };
  for (const auto& [task, place] : tasks) {
    expectEnd(fmt::format("--inject rank=2,task={},stall --patience 1", task),
              {fmt::format("heddle: rank 2 is lost {}: nothing has moved on any rank for 1 s, and "
                           "rank 0 waits for it",
                           place),
               "\n  rank 0 (pid ", " and waits for rank 2\n"});
  }
  expectEnd("--inject rank=1,task=inputs,throw", {"heddle: rank 1: injected: throw"});
}

TEST_F(RunJobFaults, FaultInATaskThatTheRankNeverBeginsIsAnError) {
  for (const auto& [task, place] :
       {std::pair("timeline", "writes the timeline"), std::pair("read", "reads its files")}) {
    expectEnd(fmt::format("--inject rank=1,task={},throw", task),
              {fmt::format("heddle: rank 1: the injected fault had no effect: rank 1 has done its "
                           "work, and began no task in which it {}",
                           place)});
  }
}

TEST_F(RunJobFaults, DelayIsWaitedForAndCorruptionFailsTheCheck) {
  const CliResult delayed = heddle(run("--deadline 0.5 --inject rank=1,instr=5,delay=1s"));
  EXPECT_EQ(delayed.code, 0) << delayed.text;
  const std::string text =
      "heddle 1\nmesh @m = [x=ranks]\n"
      "fusion f(%x: f32[t] shard(@m, 0: x)) with t = 64 {\n  %y = neg(%x)\n  return %y\n}\n";
  const std::string run_neg =
      "run " + write("neg.fusion", text) + " --device cpu --ranks 2 --check=full ";
  EXPECT_EQ(heddle(run_neg).code, 0);
  const CliResult corrupt = heddle(run_neg + "--inject rank=1,instr=1,corrupt");
  EXPECT_EQ(corrupt.code, 1) << corrupt.text;
  EXPECT_NE(corrupt.text.find("WRONG"), std::string::npos) << corrupt.text;
}

// Each command waits for a pipe that nobody writes to, or for a compiler that does not return,
// until `timeout` ends it.
// Runs a command, sends a signal to it after some seconds, and expects a message that names the
// phase. On a busy machine, the command may need longer to reach the phase. The function then runs
// it again, for twice as long.
void expectPhase(const std::string& command, const std::string& phase,
                 const std::string& environment = "") {
  const std::string message = "heddle: told to end by signal 15 while it " + phase + "\n";
  CliResult result;
  for (int seconds = 5; result.text != message && seconds <= 40; seconds *= 2) {
    const std::string by_timeout = fmt::format(" timeout --preserve-status -s TERM {}", seconds);
    result = heddle(command, environment + by_timeout);
  }
  EXPECT_EQ(result.code, 128 + 15) << command << "\n" << result.text;
  EXPECT_EQ(result.text, message) << command;
}

TEST_F(RunJobFaults, SignalDuringReadingIsNamed) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string from_pipe = " /dev/stdin 0<>" + pipe;
  expectPhase("verify" + from_pipe, "reads its files");
  expectPhase("dump" + from_pipe, "reads its files");
  expectPhase("run --device cpu --ranks 2" + from_pipe, "reads its files");
}

TEST_F(RunJobFaults, SignalDuringPreparationOfARunIsNamed) {
  const std::string compiler =
      write("compiler",
            "#!/bin/sh\nfor argument in \"$@\"; do\n"
            "  case $argument in *kernel.cpp) exec sleep 50 >/dev/null 2>&1 ;; esac\n"
            "done\nexec c++ \"$@\"\n");
  ASSERT_EQ(chmod(compiler.c_str(), 0700), 0);
  expectPhase("run examples/softmax.fusion --device cpu", "prepares a run",
              "HEDDLE_CXX=" + compiler + " HEDDLE_CACHE_DIR=" + (folder_ / "cache").string());
}

// How long a process reads its file depends on the machine and on the build, but it compiles for
// several times as long. One of the doubled times is therefore within the compilation.
TEST_F(RunJobFaults, SignalDuringCompilationNamesIt) {
  constexpr int kOps = 20000;
  std::string text = "heddle 1 fusion f(%x: f32[n]) with n = 64 {\n%y0 = neg(%x)\n";
  for (int i = 1; i < kOps; ++i) {
    text += fmt::format("%y{} = cumsum(%y{}, axis=0)\n", i, i - 1);
  }
  text += fmt::format("return %y{} }}\n", kOps - 1);
  const std::string file = write("long.fusion", text);
  const std::string message = "heddle: told to end by signal 15 while it compiles the program\n";
  for (const std::string command : {"verify ", "dump ", "run --device cpu --ranks 2 "}) {
    std::string printed;
    for (double seconds = 0.1; printed != message && seconds < 30; seconds *= 2) {
      printed = heddle(command + file, fmt::format("timeout -s TERM {}", seconds)).text;
    }
    EXPECT_EQ(printed.substr(0, 200), message) << command;
  }
}

// The ranks are threads of one process, so one message describes all of them.
TEST_F(RunJobFaults, SignalDuringARunNamesTheInstructions) {
  const std::string by_timeout = "timeout --preserve-status -s TERM 4";
  const CliResult one = heddle(
      "run examples/softmax.fusion --device cpu --inject rank=0,instr=1,delay=60s", by_timeout);
  EXPECT_EQ(one.code, 128 + 15) << one.text;
  EXPECT_EQ(one.text,
            "heddle: told to end by signal 15 in a run computing at instruction 1 "
            "(launch @k0(%x) -> (%y) stream=0)\n");
  const CliResult three = heddle(run("--inject rank=2,instr=1,delay=60s"), by_timeout);
  EXPECT_EQ(three.code, 128 + 15) << three.text;
  for (const char* part : {"heddle: told to end by signal 15\n  rank 0 (pid ", "\n  rank 1 (pid ",
                           ", in run 1 communicating at instruction 5 (", "\n  rank 2 (pid ",
                           ", in run 1 computing at instruction 1 (copy %x -> %a stream=0)"}) {
    EXPECT_NE(three.text.find(part), std::string::npos) << part << "\n" << three.text;
  }
}

// Ranks 2 and 3 hold copies of the same elements, and so do ranks 0 and 1. The first fault corrupts
// the second copy of a pair, the second fault the first copy.
TEST_F(RunJobFaults, EveryCopyOfAResultIsChecked) {
  const std::string text =
      "heddle 1\nmesh @m = [y=2, x=2]\n"
      "fusion f(%x: f32[t, k] shard(@m, 0: y, 1: x)) with t = 8, k = 6 {\n"
      "  %y = sum(%x, axes=[1]) shard(@m, 0: y)\n  return %y\n}\n";
  const std::string run_sum =
      "run " + write("copies.fusion", text) + " --device cpu --ranks 4 --check ";
  const CliResult program = heddle("dump " + (folder_ / "copies.fusion").string() +
                                   " --ranks 4 --stage host --overlap off");
  const size_t body = program.text.find("allocate stream=0", program.text.find("program f("));
  const size_t post = program.text.find("communicate allreduce", body);
  ASSERT_NE(post, std::string::npos) << program.text;
  const auto lines = std::count(program.text.begin() + static_cast<std::ptrdiff_t>(body),
                                program.text.begin() + static_cast<std::ptrdiff_t>(post), '\n');
  const std::string fault = ",instr=" + std::to_string(lines) + ",corrupt";
  const auto check = [&](const char* rank, const std::vector<std::string>& parts) {
    const CliResult result = heddle(run_sum + "--overlap off --inject rank=" + rank + fault);
    EXPECT_EQ(result.code, 1) << result.text;
    for (const std::string& part : parts) {
      EXPECT_NE(result.text.find(part), std::string::npos) << part << " in\n" << result.text;
    }
  };
  EXPECT_EQ(heddle(run_sum).code, 0);
  check("3", {"%y DIFFERS on rank 3 from rank 2 in 4 of 4", "check    %y right in 8",
              "%y, the copy of rank 3, WRONG in 4 of 4 elements; [4]: got "});
  check("0", {"%y DIFFERS on rank 1 from rank 0 in 4 of 4", "check    %y WRONG in 4 of 8 elements",
              ", on rank 0 (sample)", "%y, the copy of rank 1, right in 4"});
}

// In the first case, one rank posts a collective alone. In the second case, one rank posts two
// collectives in another order.
TEST_F(RunJobFaults, WrongProgramReportsWhereItWaits) {
  const auto expectIn = [&](const std::string& body, const std::vector<std::string>& parts) {
    const std::string text =
        "heddle 1\nmesh @m = [x=ranks]\nprogram p(%x: f32[n]) -> (%y) with n = 4 {\n"
        "  slot %y: f32[n]\n  slot %z: f32[n]\n  %y = allocate\n  %z = allocate\n" +
        body + "}\n";
    const CliResult result = heddle("run " + write("wrong.hostir", text) +
                                    " --device cpu --ranks 3 --no-verify --deadline 0.5");
    EXPECT_EQ(result.code, 2) << result.text;
    for (const std::string& part : parts) {
      EXPECT_NE(result.text.find(part), std::string::npos) << part << " in\n" << result.text;
    }
  };
  const std::string sum = "$t = communicate allreduce %x -> %y team=@m op=sum stream=0";
  const std::string most = "$u = communicate allreduce %x -> %z team=@m op=max stream=0";
  expectIn("  if rank == 1 {\n    " + sum + "\n    wait $t\n  } else {\n    copy %x -> %y\n  }\n",
           {"heddle: rank 1 is lost in run 1 communicating at instruction 3 (" + sum +
                "): it waits there, and ranks 0 and 2 have finished that run without posting it\n",
            "  rank 0 (pid "});  // the rank may have left already
  const std::string waits = "\n    wait $t\n    wait $u\n";
  expectIn("  if rank == 0 {\n    " + sum + "\n    " + most + waits + "  } else {\n    " + most +
               "\n    " + sum + waits + "  }\n",
           {" posted allreduce(max) of 4 f32", ": failed, in run 1 communicating at instruction "});
}

TEST_F(RunJobFaults, WrongFaultsAndLimitsAreReported) {
  expectError(run("--inject rank=5,instr=1,die"),
              "--inject rank=5,instr=1,die: rank=5, the job has 3 rank(s)");
  expectError(run("--inject rank=1,instr=99,die"),
              "--inject: there is no instruction 99, the program has 11");
  expectError(run("--inject rank=1,instr=1"),
              "--inject rank=1,instr=1: die, throw, stall, delay=5s or corrupt is missing");
  expectError("run examples/softmax.fusion --device cpu --inject rank=0,instr=1,stall",
              "a stall needs another rank that notices it");
  expectError(run("--deadline 0"), "--deadline");
  expectError(run("--patience -1"), "--patience");
  expectError(run("--trace /no_such_folder/x.json"),
              "cannot open /no_such_folder/x.json for writing: No such file");
}

struct Span {
  double begin, end;
};

// Each instruction that moves data must appear on every rank as often as it runs. The spans of one
// stream must not overlap. The spans of all ranks in one collective must overlap.
TEST_F(RunJobFaults, TimelineListsEveryInstruction) {
  const Json events = trace(run(""), "sum.json");
  std::map<std::tuple<int, int>, int> work;  // rank and instruction: number of runs
  std::map<std::tuple<int, int>, std::vector<Span>> streams;  // rank and stream: spans
  std::map<int, std::set<int>> issued;                        // rank: issued instructions
  std::vector<Span> sums;
  for (const Json& event : events) {
    if (event.at("ph") != "X") continue;
    const int rank = event.at("pid");
    const int instruction = event.at("args").at("instruction");
    const Span span{event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>()};
    EXPECT_GE(span.begin, 0);
    EXPECT_GE(span.end, span.begin);
    if (event.at("cat") == "issue") {
      issued[rank].insert(instruction);
      continue;
    }
    ++work[{rank, instruction}];
    const int stream = event.at("tid");
    EXPECT_EQ(stream, event.at("args").at("stream"));
    streams[{rank, stream}].push_back(span);
    if (instruction == 5) {
      EXPECT_EQ(event.at("cat"), "collective");
      EXPECT_EQ(event.at("name"), "$t = communicate allreduce %a -> %y team=@m[x] op=sum stream=1");
      EXPECT_EQ(event.at("args").at("team"), Json({0, 1, 2}));
      EXPECT_EQ(stream, 1);
      sums.push_back(span);
    } else {
      EXPECT_EQ(event.at("name").get<std::string>().substr(0, 5), "copy ");
      EXPECT_EQ(event.at("args").at("bytes"), 2 * 64 * 4);
      EXPECT_EQ(stream, 0);
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(issued[rank], (std::set<int>{0, 1, 2, 3, 4, 5, 6, 8, 9, 10}));  // 7 is the for
    EXPECT_EQ((work[{rank, 1}]), 1);
    EXPECT_EQ((work[{rank, 5}]), 1);
    EXPECT_EQ((work[{rank, 8}]), 3);
    EXPECT_EQ((work[{rank, 9}]), 3);
  }
  EXPECT_EQ(work.size(), 3u * 4);
  for (auto& [place, spans] : streams) {
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].begin, spans[i - 1].end);
  }
  ASSERT_EQ(sums.size(), 3u);
  for (const Span& a : sums) {
    for (const Span& b : sums) EXPECT_LT(a.begin, b.end);
  }
}

TEST_F(RunJobFaults, TimelineOfAFusionListsKernelsAndLibraryCalls) {
  const Json events = trace("run examples/tp_mlp.fusion --device cpu --ranks 2", "mlp.json");
  std::map<int, std::set<std::string>> kinds;  // rank: mnemonics
  for (const Json& event : events) {
    if (event.at("ph") != "X" || event.at("cat") == "issue") continue;
    const std::string text = event.at("name");
    kinds[event.at("pid")].insert(text.substr(0, text.find(' ')));
  }
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_TRUE(kinds[0].contains("call_library"));
  EXPECT_TRUE(kinds[0].contains("launch"));
  EXPECT_EQ(kinds[0], kinds[1]);
}

}  // namespace
}  // namespace heddle::tools::run_job_faults_cpu_test
