// Reads and writes the files of the text tests: tests/text/<stage>/<pass>.txt.
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
// version line `heddle 1`. Line numbers in messages count from the first line of the input. The
// expected text, or the expected error, ends before the next case. Empty lines around it are
// ignored. Options before the first case apply to all cases of the file.
//
// A case may try several lines in one frame. The runner replaces `...` by each line after `---
// each` in turn. The expected text then contains each line with its result or error below it:
//
//   === wrong axes: the error names the axis
//   fusion f(%x: f32[2, 6]) {
//     ...
//     return %x
//   }
//   --- each
//   %r = mean(%x, axes=[2])
//   --- expected
//   %r = mean(%x, axes=[2])
//       case:2: mean: axis 2 is out of range for 2 axes
//
// The folder is the stage of the compiler. Each stage prints:
//
//   fusion    the fusion after the passes of ir/passes. Comments after it describe each move
//             (change of a sharding), each guard (size check) that the passes added, and each
//             request to compute a value in several parts, as in `stream(0: 4)`.
//   segment   the segments with their reasons, as `heddle dump --stage segments`
//   lower     the host program that lowering produces
//   host      the host program after the passes of host/passes; the input is a host program, or a
//             fusion that is lowered first
//   verify    `legal`, or the error of verify(), of a fusion or a host program
//   schedule  the schedule of each kernel, as `heddle dump --stage schedule`
//   command   the exit code and the output of the command heddle, for each line of arguments after
//             `--- each`. The input is the file case.fusion, or case.hostir if it contains a host
//             program. The input has no `...`.
//
// Options:
//
//   ranks=4       number of ranks of the job (default 1; in stage verify: unknown)
//   --set t=12    sets the size of a symbol, for stages verify and schedule and for the cost model
//                 of chunks
//   sizes=known   stage verify: assumes the default sizes; without it and --set, sizes are unknown
//   only=a,b      runs only these passes; only=none runs no pass
//   upto=a        runs the passes up to this one
//   skip=a,b      runs all passes except these
//   overlap=off   like `heddle --overlap off`
//   chunks=3      like `heddle --overlap 3`
//   attention=library  a library computes every attention for which Attention::why_not is empty
//   show=decisions  fusion: the decisions about the default sizes, and the fusion after them
//   show=body     host, lower: the program without kernels and slots
//   show=posts    host, lower: only the lines that post a collective
//   show=groups   segment: the text from the first segment on
//   show=why      fusion: what each move costs, and the alternatives; host: only the decisions of
//                 chunk_collectives, and for each output in an input why it is copied or not
//   format=dot    segment: dot or json instead of text
//   device=cuda   schedule: cpu (default) or cuda
//   twice         fusion, host: runs the passes again on their result and requires the same text
//
// The program is called as text_tests [--update] FILE... With --update, or HEDDLE_UPDATE=1 in the
// environment, it does not compare. Instead, it writes the texts that the passes produce into the
// files. Read the diff before you commit it.
#pragma once

#include <string>
#include <vector>

namespace heddle::text_tests {

// The result of a case: a text, or an error message.
struct Outcome {
  bool is_error = false;
  std::string text;
  bool operator==(const Outcome&) const = default;
};

struct Case {
  std::string name;                  // "a dead chain"
  std::vector<std::string> options;  // the options of the file, then those of the case
  std::string input;
  Outcome expected;
  int line = 0;         // line number of `===`, from 1
  std::string written;  // the lines from `===` to the end of the input
};

struct CaseFile {
  std::string path;
  std::string stage;   // "fusion"
  std::string header;  // the lines before the first case
  std::vector<Case> cases;
};

// Reads the cases of a file. Throws UserError with path and line if the file cannot be read or a
// case is incomplete.
CaseFile readCases(const std::string& path);

// Writes the file with new expected texts, one per case.
void writeCases(const CaseFile& file, const std::vector<Outcome>& outcomes);

// Returns the differences between two texts in unified format, or "" if they are equal.
std::string unifiedDiff(const std::string& expected, const std::string& actual);

}  // namespace heddle::text_tests
