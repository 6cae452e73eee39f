// Checks that wrong input gives exit code 2 and a message that names the fault. These cases need
// files in other formats, or a broken environment. tests/text/command/wrong_input.txt contains the
// cases that need only a text and a command.
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

TEST_F(MainWrongInput, FilesWithoutTextAreReported) {
  const std::string empty = write("empty.fusion", "\n");
  expectMessage("run " + empty, empty + ":2:1: found end of text, expected 'heddle'");
  const std::string binary = write("binary.fusion", "heddle 1\n\xff\xfe");
  expectError("run " + binary, binary + ":2:1: found '\\xff', which starts no token");
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
  expectError(run + "--input z=" + npy("z.npy", "<f4", "(4,)", 16), "no tensor input %z");
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

TEST_F(MainWrongInput, FoldersAndMissingDevicesAreReported) {
  expectMessage("run " + folder_.string(),
                folder_.string() + ": cannot read the file: it is a folder");
  if (heddle("devices").text.find("cuda       none") != std::string::npos) {
    expectError("run " + neg() + " --device cuda", "heddle: --device cuda: ");
    expectError("run " + neg() + " --device cuda --ranks 2", "heddle: --device cuda: ");
  }
}

TEST_F(MainWrongInput, OutOfMemoryNamesSlotAndBytes) {
  const std::string run = "run " + neg() + " --device cpu --set t=4096 ";
  expectError(run + "--ranks 2 --memory-limit 20000", ": out of memory: %z asks for 16384 bytes");
  EXPECT_EQ(heddle(run + "--memory-limit 40000").code, 0);
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

TEST_F(MainWrongInput, MismatchedReferenceIsReported) {
  const std::string run = "run examples/moe_dispatch_combine.hostir --device cpu --ranks 2 ";
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

}  // namespace
}  // namespace heddle::tools::main_wrong_input_cpu_test
