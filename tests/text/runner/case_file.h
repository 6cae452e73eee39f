// The files of the text tests: tests/text/<stage>/<pass>.txt.
//
//   # A comment on all cases of the file.
//   options: ranks=4 only=removeDead
//
//   === a dead chain: expressions that no output needs are removed
//   options: ranks=2
//   fusion f(%a: f32[t]) {
//     ...
//   }
//   --- expected
//   fusion f(%a: f32[t]) {
//     ...
//   }
//
//   === a mesh larger than the job: is refused
//   mesh @m = [x=8]
//   ...
//   --- error
//   mesh @m = [x=8] needs 8 ranks, the job has 4
//
// A case starts with `=== name: one sentence of what is expected`. The input follows, without the
// version line `heddle 1`; line numbers in messages count from the first line of the input. The
// expected text, or the expected error, ends before the next case; empty lines around it do not
// count. Options before the first case are the defaults of the file.
//
// The folder is the stage; what it prints:
//
//   fusion    the fusion after the passes of ir/passes, then as comments what each move does and
//             which guards the passes added
//   segment   the segments with their reasons, as `heddle dump --stage segments`
//   lower     the host program that lowering produces
//   host      the host program after the passes of host/passes; the input is a host program, or a
//             fusion that is lowered first
//   verify    `legal`, or the error of verify(), of a fusion or a host program
//   schedule  the schedule of each kernel, as `heddle dump --stage schedule`
//
// Options:
//
//   ranks=4       ranks of the job (default 1; verify: unknown)
//   --set t=12    the size of a symbol; verify: the sizes are known; chunks: for the cost model
//   sizes=known   verify: the sizes of the run are the defaults
//   only=a,b      runs only these passes; only=none runs no pass
//   upto=a        runs the passes up to this one
//   skip=a,b      leaves out these passes
//   overlap=off   like `heddle --overlap off`
//   chunks=3      like `heddle --overlap 3`
//   show=body     host, lower: the program without kernels and slots
//   show=posts    host, lower: only the lines that post a collective
//   show=why      fusion: what each move costs, and the alternatives; host: only the decisions of
//                 chunk_collectives
//   format=dot    segment: dot or json instead of text
//   device=cuda   schedule: cpu (default) or cuda
//   twice         fusion, host: runs the passes again on their result and requires the same text
//
// The program: text_tests [--update] FILE... With --update, or HEDDLE_UPDATE=1 in the environment,
// it writes the texts that the passes produce into the files instead of comparing. Read the diff
// before you commit it.
#pragma once

#include <string>
#include <vector>

namespace heddle::text_tests {

// What a case produces.
struct Outcome {
  bool is_error = false;
  std::string text;
  bool operator==(const Outcome&) const = default;
};

struct Case {
  std::string name;                  // "a dead chain"
  std::vector<std::string> options;  // those of the file, then its own
  std::string input;
  Outcome expected;
  int line = 0;         // of `===`, from 1
  std::string written;  // the lines from `===` to the end of the input
};

struct CaseFile {
  std::string path;
  std::string stage;   // "fusion"
  std::string header;  // the lines before the first case
  std::vector<Case> cases;
};

// UserError with path and line: the file cannot be read or a case is incomplete.
CaseFile readCases(const std::string& path);

// Writes the file with other expected texts, one per case.
void writeCases(const CaseFile& file, const std::vector<Outcome>& outcomes);

// Returns the differences between two texts in unified format, or "" if they are equal.
std::string unifiedDiff(const std::string& expected, const std::string& actual);

}  // namespace heddle::text_tests
