// Checks that wrong input gives exit code 2 and a message that names the fault.
#include <string>
#include <vector>

#include "tests/tools/cli.h"

namespace heddle::tools::main_wrong_input_cpu_test {
namespace {

namespace fs = std::filesystem;

class MainWrongInput : public Cli {
 protected:
  // Writes a fusion of one statement, with the inputs %x: f32[t] and %y: f32[u]. The statement is
  // on line 3 of the file.
  std::string fusion(const std::string& name, const std::string& statement) {
    return write(name, "heddle 1\nfusion f(%x: f32[t], %y: f32[u]) with t = 4, u = 4 {\n  " +
                           statement + "\n  return %z\n}\n");
  }
  std::string neg() { return fusion("neg.fusion", "%z = neg(%x)"); }
  // Requires that the output of the command is this one message.
  void expectMessage(const std::string& arguments, const std::string& message) {
    const CliResult result = heddle(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.text, "heddle: " + message + "\n") << arguments;
  }
  std::string npy(const std::string& name, const std::string& type, const std::string& shape,
                  size_t bytes) {
    std::string header =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    return write(name, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n' +
                           std::string(bytes, '\0'));
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }
};

// heddle cannot inline a wrong call, so the message names the file without a line.
TEST_F(MainWrongInput, WrongCallNamesItsFile) {
  const std::string file = write("call.hostir",
                                 "heddle 1\nprogram twice(%a: f32[4]) -> (%b) {\n"
                                 "  slot %b: f32[4]\n  %b = allocate\n  copy %a -> %b\n}\n"
                                 "program main(%x: f32[4]) -> (%y) {\n  slot %y: f32[4]\n"
                                 "  call @twice(%x, %x) -> (%y)\n}\n");
  expectError("verify " + file, "heddle: " + file + ":");
  expectError("run " + file + " --device cpu", "heddle: " + file + ":");
}

TEST_F(MainWrongInput, TextErrorsNameLineColumnFoundAndExpected) {
  const std::string bad = write("bad.fusion", "heddle 1\nfusion f(%x f32[t]) {\n}\n");
  expectMessage("run " + bad, bad + ":2:13: found 'f32', expected ':'");
  const std::string empty = write("empty.fusion", "\n");
  expectMessage("run " + empty, empty + ":2:1: found end of text, expected 'heddle'");
  const std::string binary = write("binary.fusion", "heddle 1\n\xff\xfe");
  expectError("run " + binary, binary + ":2:1: found '\\xff', which starts no token");
}

TEST_F(MainWrongInput, DisagreeingShapesAreBothNamed) {
  const std::string run = fusion("run.fusion", "%z = add(%x, %y)");
  expectError("run " + run + " --device cpu --set u=5",
              "axis 0 of %x: f32[t] and of %y: f32[u], operands of add at line 3");
  expectError("run " + run + " --device cpu --set u=5", "t = 4 and u = 5 must be equal");
}

TEST_F(MainWrongInput, SetNamesASizeOrAScalar) {
  const std::string file = write("both.fusion",
                                 "heddle 1\nfusion f(%x: f32[n], %n: i64 = 2) with n = 4 {\n"
                                 "  %y = slice(%x, starts=[0], stops=[%n])\n  return %y\n}\n");
  expectError(
      "run " + file + " --device cpu --set n=3",
      "--set n=3: the file has a size n and an input %n; write --set size.n=N for the size, "
      "--set %n=N for the input");
  expectError("run " + file + " --device cpu --set %n=5",
              "the stop of axis 0 of %x: f32[n] in slice at line 3: %n = 5 must be at most n = 4");
  expectError("run " + file + " --device cpu --set %n=2 --set %n=3",
              "--set %n=3: 'n' is set twice, first with --set %n=2");
  const std::string equal = write("equal.fusion",
                                  "heddle 1\nfusion f(%x: f32[n], %n: i64 == n) {\n"
                                  "  %y = iota(sizes=[%n], axis=0)\n  return %y\n}\n");
  expectError("run " + equal + " --device cpu --set size.n=4",
              "scalar input %n has no default; give it with --set %n=VALUE");
  expectError("run " + equal + " --device cpu --set %n=4",
              "size 'n' has no default; give it with --set size.n=N");
  expectError("run " + equal + " --device cpu --set size.n=4 --set %n=5",
              "the scalar input %n: %n = 5 and n = 4 must be equal");
  expectError("run " + equal + " --device cpu --ranks 2 --set size.n=4 --set %n=5",
              "the scalar input %n: %n = 5 and n = 4 must be equal");
  expectError("run " + file + " --device cpu --set size.n=1",
              "the stop of axis 0 of %x: f32[n] in slice at line 3: %n = 2 must be at most n = 1");
  expectError("run " + file + " --device cpu --set %n=2.5", "'2.5' is not a value of type i64");
}

// No output has the size that overflows, because the kernel does not store the padded tensor.
TEST_F(MainWrongInput, SizeThatOverflowsInsideAKernelIsReported) {
  const std::string file = write("inside.fusion",
                                 "heddle 1\nfusion f(%x: f32[n, 4]) with n = 4 {\n"
                                 "  %y = pad(%x, lows=[9223372036854775807, 0], highs=[1, 0])\n"
                                 "  %s = sum(%y)\n  return %s\n}\n");
  for (const char* command : {"verify ", "run --device cpu ", "dump "}) {
    expectError(command + file,
                file + ":3: axis 0 of %y at line 3: size 'n + 9223372036854775807' overflows");
  }
  const std::string ranks = write(
      "ranks.fusion", "heddle 1\nfusion f(%x: f32[ranks]) {\n  %y = neg(%x)\n  return %y\n}\n");
  expectError("verify " + ranks, ranks + ":2: axis 0 of %x at line 2: 'ranks' has a value in host");
}

TEST_F(MainWrongInput, TensorThatIsTooLargeInsideAKernelIsReported) {
  const std::string symbol = write("symbol.fusion",
                                   "heddle 1\nfusion f(%x: f32[n, 4]) with n = 4 {\n"
                                   "  %y = pad(%x, lows=[9223372036854775800, "
                                   "9223372036854775800], highs=[1, 1])\n"
                                   "  %s = sum(%y)\n  %t = sum(%x)\n  return %s, %t\n}\n");
  const std::string number = write("number.fusion",
                                   "heddle 1\nfusion f(%x: f32[4, 4]) {\n"
                                   "  %y = pad(%x, lows=[9223372036854775800, 0], highs=[1, 0])\n"
                                   "  %s = sum(%y)\n  return %s\n}\n");
  for (const char* command : {"verify ", "run --device cpu ", "dump "}) {
    expectMessage(command + symbol, symbol +
                                        ":3: %y at line 3 of [9223372036854775805, "
                                        "9223372036854775805] does not fit in 64 bits");
    expectMessage(command + number,
                  number + ":3: %y at line 3 of [9223372036854775805, 4] does not fit in 64 bits");
  }
}

TEST_F(MainWrongInput, NegativeSizeInsideAKernelIsReported) {
  const std::string text =
      "heddle 1\nfusion f(%x: f32[n]) with n = 8 {\n  %y = pad(%x, lows=[-3], highs=[-3])\n"
      "  %s = sum(%y)\n  return %s\n}\n";
  const std::string file = write("cut.fusion", text);
  const std::string message = "3: axis 0 of %y at line 3 has the size n + (-3) + (-3) = -2";
  EXPECT_EQ(heddle("verify " + file).code, 0);
  expectMessage("run --device cpu --set n=4 " + file, file + ":" + message);
  expectMessage("dump --set n=4 " + file, file + ":" + message);
  std::string small = text;
  const std::string small_file =
      write("small.fusion", small.replace(text.find("n = 8"), 5, "n = 4"));
  expectMessage("verify " + small_file, small_file + ":" + message);
}

TEST_F(MainWrongInput, MissingInputsAreReported) {
  const std::string scalar = write("scalar.fusion",
                                   "heddle 1\nfusion f(%x: f32[t], %s: f64) with t = 2 {\n"
                                   "  %y = mul(%x, %s)\n  return %y\n}\n");
  expectMessage("run " + scalar + " --device cpu",
                scalar + ": scalar input %s has no default; give it with --set s=VALUE");
  const std::string size = write("size.fusion",
                                 "heddle 1\nfusion f(%x: f32[t]) {\n  %y = neg(%x)\n"
                                 "  return %y\n}\n");
  expectMessage("run " + size + " --device cpu",
                size + ": size 't' has no default; give it with --set t=N");
}

TEST_F(MainWrongInput, WrongInputFilesAreReported) {
  const std::string run = "run " + neg() + " --device cpu ";
  const std::string f64 = npy("f64.npy", "<f8", "(4,)", 32);
  expectMessage(run + "--input x=" + f64,
                "--input x=" + f64 + ": the file holds f64, expected f32");
  const std::string rank = npy("rank.npy", "<f4", "(2, 2)", 16);
  expectMessage(run + "--input x=" + rank,
                "--input x=" + rank + ": the file has sizes [2, 2], expected 1 axes");
  expectError(run + "--set t=5 --input x=" + npy("four.npy", "<f4", "(4,)", 16),
              "--set t=5: axis 0 of the file for %x is 4");
  expectError(run + "--input x=" + npy("short.npy", "<f4", "(4,)", 12), "short.npy");
  expectError(run + "--input x=no_such.npy",
              "no_such.npy: cannot read the file: No such file or directory");
  expectError(run + "--input z=" + npy("z.npy", "<f4", "(4,)", 16), "no tensor input %z");
  expectError(run + "--input x", "expected NAME=VALUE");
}

// The sizes of files contradict numbers and expressions in the text, or each other.
TEST_F(MainWrongInput, FilesThatContradictTheTextAreReported) {
  const std::string text = write("sizes.fusion",
                                 "heddle 1\nfusion f(%a: f32[t], %b: f32[t], %c: f32[3], "
                                 "%d: f32[2*t + 1]) with t = 4 {\n  %e = add(%a, %b)\n"
                                 "  %f = neg(%c)\n  %g = neg(%d)\n  return %e, %f, %g\n}\n");
  const std::string five = npy("five.npy", "<f4", "(5,)", 20);
  const std::string run = "run " + text + " --device cpu --input ";
  const auto message = [&](const std::string& input, const std::string& expected,
                           const std::string& type) {
    return "--input " + input + "=" + five + ": the file has sizes [5], expected " + expected +
           " for %" + input + ": " + type + " in " + text;
  };
  expectMessage(run + "c=" + five, message("c", "[3]", "f32[3]"));
  expectMessage(run + "d=" + five, message("d", "[9]", "f32[2*t + 1]"));
  const std::string four = npy("four.npy", "<f4", "(4,)", 16);
  expectMessage(run + "a=" + five + " --input b=" + four, message("a", "[4]", "f32[t]"));
  EXPECT_EQ(heddle(run + "a=" + five).code, 0);
  // The files of two inputs of a host program disagree about the size hidden.
  const CliResult result =
      heddle("run examples/moe_dispatch_combine.hostir --device cpu --ranks 2 --input x=" +
             npy("x.npy", "<f4", "(61, 31)", 7564) +
             " --input gate=" + npy("g.npy", "<f4", "(32, 7)", 896));
  EXPECT_EQ(result.code, 2) << result.text;
  EXPECT_NE(result.text.find("the file has sizes [61, 31], expected [61, 32]"), std::string::npos)
      << result.text;
}

TEST_F(MainWrongInput, VerifierMessagesNameFileAndLine) {
  const std::string file = write("line.hostir",
                                 "heddle 1\nprogram p(%x: f32[4]) -> (%y) {\n  slot %y: f32[5]\n"
                                 "  %y = allocate stream=0\n  copy %x -> %y stream=0\n}\n");
  for (const char* command : {"verify ", "dump ", "run --device cpu "}) {
    expectError(command + file, "heddle: " + file + ":5: instruction 1 ");
  }
}

// The sizes of the run decide whether the op is legal.
TEST_F(MainWrongInput, RunMessagesOfFusionsNameFileAndLine) {
  const std::string head =
      "heddle 1\nfusion f(%x: f32[n, k]) with n = 0, k = 3 {\n  %z = neg(%x)\n";
  const std::string max = write("max.fusion", head + "  %y = argmax(%z, axis=0)\n  return %y\n}\n");
  expectError(
      "run " + max + " --device cpu",
      "heddle: " + max + ":4: argmax at line 4: %z: f32[n, k] must have elements along axis 0");
  const std::string large = write("large.fusion",
                                  "heddle 1\nfusion f(%x: f32[n, n, n]) with n = 4000000000 {\n"
                                  "  %y = exp(%x)\n  return %y\n}\n");
  expectError("run " + large + " --device cpu", "heddle: " + large + ":2: %x at line 2 ");
}

TEST_F(MainWrongInput, OnlyCloseNamesAreSuggested) {
  expectError("run examples/softmax.fusion --device cpu --set columsn=3",
              "no size or scalar input 'columsn'; the nearest name is 'columns'");
}

TEST_F(MainWrongInput, MissingFilesAndDevicesAreReported) {
  expectMessage("run no_such.fusion",
                "no_such.fusion: cannot read the file: No such file or directory");
  expectMessage("run " + folder_.string(),
                folder_.string() + ": cannot read the file: it is a folder");
  if (heddle("devices").text.find("cuda       none") != std::string::npos) {
    expectError("run " + neg() + " --device cuda", "heddle: --device cuda: ");
    expectError("run " + neg() + " --device cuda --ranks 2", "heddle: --device cuda: ");
  }
  expectError("run " + neg() + " --device tpu", "tpu");
}

TEST_F(MainWrongInput, OutOfMemoryNamesSlotAndBytes) {
  const std::string run = "run " + neg() + " --device cpu --set t=4096 ";
  expectMessage(run + "--memory-limit 10000", "input %x: out of memory: a tensor of 16384 bytes");
  expectMessage(run + "--memory-limit 20000",
                neg() +
                    ":3: instruction 0 (%z = allocate reuse=(%x) stream=0): out of memory: %z "
                    "asks for 16384 bytes, the run holds 0 bytes");
  expectError(run + "--ranks 2 --memory-limit 20000", ": out of memory: %z asks for 16384 bytes");
  EXPECT_EQ(heddle(run + "--memory-limit 40000").code, 0);
  expectError("run " + neg() + " --device null --memory-limit 9",
              "--memory-limit is for --device cpu, not null");
}

TEST_F(MainWrongInput, KernelErrorsShowTheSource) {
  const std::string compiler = write("compiler",
                                     "#!/bin/sh\nfor a in \"$@\"; do case $a in *kernel.cpp) echo "
                                     "made to fail >&2; exit 1;; esac; done\nexec c++ \"$@\"\n");
  fs::permissions(compiler, fs::perms::owner_all);
  const std::string environment =
      "HEDDLE_CXX=" + compiler + " HEDDLE_CACHE_DIR=" + (folder_ / "cache").string();
  const std::string run = "run " + neg() + " --device cpu";
  expectError(run, compiler + " failed with exit code 1 on a kernel:\nmade to fail\n", environment);
  expectError(run, "\n    1 | ", environment);
  expectError(run + " --ranks 3", "failed with exit code 1 on a kernel", environment);
}

TEST_F(MainWrongInput, UnwritableCacheIsReportedOnce) {
  const std::string run = "run examples/tp_mlp.fusion --device cpu --ranks 2 --check=full";
  // HEDDLE_CACHE_DIR is a file, so not even root can write into it as a folder.
  const std::string environment = "HEDDLE_CACHE_DIR=" + write("taken", "a file");
  const CliResult result = heddle(run, environment);
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_EQ(count(result.text, "is not used: it is not a folder"), 1u) << result.text;
}

TEST_F(MainWrongInput, DamagedCacheIsReplaced) {
  const std::string cache = (folder_ / "cache").string();
  const std::string run = "run " + neg() + " --device cpu --check=full";
  const std::string environment = "HEDDLE_CACHE_DIR=" + cache;
  ASSERT_EQ(heddle(run, environment).code, 0);
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache)) {
    if (!entry.is_regular_file() || entry.file_size() < 8) continue;
    fs::resize_file(entry.path(), entry.file_size() / 2);
    ++files;
  }
  EXPECT_GT(files, 0);
  const CliResult result = heddle(run, environment);
  EXPECT_EQ(result.code, 0) << result.text;
}

TEST_F(MainWrongInput, WrongMeshesAndShardingsAreReported) {
  const std::string head = "heddle 1\nmesh @m = [x=4]\nfusion f(%x: f32[t, h] shard(@m, 0: x";
  const std::string tail = ")) with t = 8, h = 8 {\n  %y = neg(%x)\n  return %y\n}\n";
  const std::string mesh = write("mesh.fusion", head + tail);
  expectMessage("run " + mesh + " --device cpu --ranks 2",
                mesh + ": mesh @m = [x=4] needs 4 ranks, the job has 2");
  const std::string twice = write("twice.fusion", head + ", 1: x" + tail);
  expectMessage("verify " + twice, twice + ":3:43: mesh axis x is used twice in one sharding");
}

TEST_F(MainWrongInput, MismatchedReferenceIsReported) {
  const std::string run = "run examples/moe_dispatch_combine.hostir --device cpu --ranks 2 ";
  expectError(run + "--reference examples/moe_dispatch_combine.fusion",
              "it has no effect without --check");
  expectError(run + "--check --reference examples/ring_allgather.hostir",
              "it is a host program, expected a fusion");
  int number = 0;
  const auto refuses = [&](const std::string& inputs, const std::string& body,
                           const std::string& reason) {
    const std::string file = write("reference" + std::to_string(number++) + ".fusion",
                                   "heddle 1\nfusion f(" + inputs + ") {\n" + body + "}\n");
    expectError(run + "--check --reference " + file, "--reference " + file + ": " + reason);
  };
  const std::string first = "%x: f32[t, h], %gate: f32[h, e], %up: f32[e, h, f]";
  const std::string down = ", %down: f32[e, f, h]";
  const std::string twice = "  %y = add(%x, %x)\n  return %y\n";
  refuses(first, twice, "it has 3 inputs, the program has 4");
  refuses(first + ", %w: f32[e, f, h]", twice, "the program has no input %w; it has %x %gate %up");
  refuses(first + ", %down: f64[e, f, h]", twice, "input %down is a tensor f64 of 3 axes there");
  refuses(first + ", %down: f32[e, f, f]", twice,
          "axis 2 of input %down is f = 48 there and 32 in the program");
  refuses(first + down, "  %y = add(%x, %x)\n  return %y, %x\n",
          "it has 2 outputs, the program has 1");
  refuses(first + down, "  %y = neg(%up)\n  return %y\n",
          "output %y is a tensor f32 of 3 axes there");
  refuses(first + down, "  %y = permute(%x, axes=[1, 0])\n  return %y\n",
          "output %y has the sizes [32, 61] there and [61, 32] in the program");
}

// The results of the host program are compared with those of a fusion.
TEST_F(MainWrongInput, HostProgramIsCheckedAgainstAFusion) {
  const std::string run =
      "run examples/in_place_loop.hostir --device cpu --set n=100 --check=full ";
  const auto reference = [&](const std::string& addend) {
    return write("plus" + addend + ".fusion", "heddle 1\nfusion f(%x: f32[n]) {\n  %y = add(%x, " +
                                                  addend + ".0)\n  return %y\n}\n");
  };
  EXPECT_EQ(heddle(run + "--reference " + reference("9")).code, 0);
  EXPECT_EQ(heddle(run + "--reference " + reference("8")).code, 1);
  const CliResult beside =
      heddle("run examples/moe_dispatch_combine.hostir --device cpu --check --set tokens=3");
  EXPECT_EQ(beside.code, 0) << beside.text;
  EXPECT_NE(beside.text.find("against examples/moe_dispatch_combine.fusion"), std::string::npos);
}

TEST_F(MainWrongInput, WrongCommandLinesAreReported) {
  expectMessage(
      "frobnicate",
      "expected a subcommand, run, bench, tune, dump, verify, devices or ops, found frobnicate");
  const std::string run = "run examples/softmax.fusion --device cpu ";
  expectError(run + "--set nope=3", "the file has no size or scalar input 'nope'");
  expectError(run + "--set rows=-1", "a size cannot be negative");
  expectError(run + "--set rows=1.5", "'1.5' is not a value of type i64");
  expectError(run + "--set rows=2 --set rows=3",
              "--set rows=3: 'rows' is set twice, first with --set rows=2");
  expectError(run + "--repeat 0", "0 is not an integer of at least 1");
  expectError(run + "--skip no_such_pass", "no_such_pass");
  expectError(run + "--check=some", "some not in {full,sample}");
  expectError("run --check=full examples/ring_allgather.hostir --device cpu",
              "so it needs a reference");
  expectError("run --check examples/softmax.fusion --device null", "computes nothing");
  expectError("dump examples/softmax.fusion --stage host --format dot", "shows only segments");
}

}  // namespace
}  // namespace heddle::tools::main_wrong_input_cpu_test
