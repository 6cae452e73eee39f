#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "host/passes/pipeline.h"
#include "host/program/program.h"
#include "ir/base/check.h"
#include "ir/reference/reference.h"
#include "ir/segment/segment.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/options.h"

namespace heddle::tools {

// A fusion or a host program, read from a file.
using Source = std::variant<Fusion, host::Program>;

// Reads and parses a file. Throws UserError if the file cannot be read or is not valid.
Source readSource(const std::string& path);

// Returns `message`, the error message of a run, with the position of the fault in the file if
// known. If the message names an instruction, the result begins with the file, and with the line
// from which the instruction comes if the line is known. `program` is the program of the run: the
// program in the file, or the program that was compiled from the fusion in the file.
std::string withLineOfRun(const std::string& message, const std::string& file, const Source& source,
                          const host::Program& program);

// Calls work(). If it throws a UserError, throws the error again with the message of
// withLineOfRun().
template <class Work>
void atLineOfRun(const std::string& file, const Source& source, const host::Program& program,
                 const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    throw withText(error, withLineOfRun(error.what(), file, source, program));
  }
}

// Returns `message` with the name of the file before it. If the message names a line of a fusion or
// an instruction of a host program, the line follows the name. Returns a message unchanged if it is
// about an option (--name) or already begins with the file.
std::string withFile(const std::string& message, const std::string& file, const Source& source);

// Calls work(). If it throws a UserError, throws the error again with the message of withFile().
template <class Work>
decltype(auto) inFile(const std::string& file, const Source& source, const Work& work) {
  try {
    return work();
  } catch (const UserError& error) {
    throw withText(error, withFile(error.what(), file, source));
  }
}

// One input of the fusion or program, with its name in the file.
struct InputSpec {
  std::string name;
  bool is_scalar = false;
  TensorView tensor;
  std::optional<Scalar> default_value;
};
std::vector<InputSpec> inputsOf(const Source& source);

// The values of --set, divided into sizes and scalars.
struct Settings {
  // The sizes that --set gives, the file's defaults for all other sizes, and the values of inputs
  // that occur in sizes or offsets (`%n`).
  SizeBindings sizes;
  std::map<std::string, Scalar> scalars;  // by input name
  std::set<std::string> deciding;  // symbols of inputs whose values occur in sizes or offsets
};
Settings settingsOf(const Source& source, const Options& options);

// Returns the source with `sizes` as the default values of its sizes. In a host program, replaces
// only defaults that the program already has, and sets the values of inputs in sizes (`%n`). A run
// uses the defaults for sizes that its inputs do not determine, such as the factors of an extent
// `a*b`. Lowering uses the defaults too.
Source withSizes(Source source, const SizeBindings& sizes);

// The unsharded inputs of a run, which are the same on every rank. A tensor comes from its .npy
// file if one is given, otherwise from the seed. A scalar comes from --set, otherwise from its
// default. A tensor whose value occurs in sizes or offsets comes from its .npy file, from --set or
// from its default.
struct Inputs {
  // Per input; unused for scalars. A tensor without data stands for the values of randomTensor()
  // with `seed` and the name of the input. For a host program, makeInputs() does not set the sizes
  // of such a tensor, because they may depend on the number of ranks.
  std::vector<HostTensor> tensors;
  std::vector<Scalar> scalars;  // per input; unused for tensors
  SizeBindings sizes;           // Settings::sizes, and the sizes that the .npy files determine
  uint64_t seed = 0;
};
Inputs makeInputs(const Source& source, const Options& options);

// Throws UserError with the name of the symbol if a symbol in the sizes of the file's inputs has no
// value. Symbols to which the job gives a value, such as `ranks`, need none.
void requireSizes(const Source& source, const SizeBindings& sizes);

// The results of the first steps of host::compile(). The next step is host::runPasses() for
// `program`.
struct Lowered {
  SegmentedFusion segmented;
  host::Program program;
};

// Runs the passes of a fusion, and then segments and lowers it, for commands that need both
// results.
Lowered lowered(const Fusion& fusion, int ranks, const host::PassOptions& passes,
                const SegmentOptions& library);

}  // namespace heddle::tools
