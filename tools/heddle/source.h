#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "host/passes/pipeline.h"
#include "host/program/program.h"
#include "ir/base/error.h"
#include "ir/reference/reference.h"
#include "ir/segment/segment.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/options.h"

namespace heddle::tools {

// A fusion or a host program, read from a file.
using Source = std::variant<Fusion, host::Program>;

// Reads and parses a file. Throws UserError if the file cannot be read or is not valid.
Source readSource(const std::string& path);

// If the message names an instruction of a host program, returns it with the file and the line in
// front, otherwise unchanged.
std::string withLine(const std::string& message, const std::string& file, const Source& source);

// Calls work(), and adds the file and the line to the message of a UserError if it names an
// instruction.
template <class Work>
void atLine(const std::string& file, const Source& source, const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    throw UserError(withLine(error.what(), file, source));
  }
}

// Returns an error message with the file in front, and with the line if the message names an
// instruction of a host program. A message about an option stays as it is.
std::string withFile(const std::string& message, const std::string& file, const Source& source);

// Calls work(), and adds the file to the message of a UserError.
template <class Work>
decltype(auto) inFile(const std::string& file, const Source& source, const Work& work) {
  try {
    return work();
  } catch (const UserError& error) {
    throw UserError(withFile(error.what(), file, source));
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
  SizeBindings sizes;                     // includes the file's defaults for sizes that are not set
  std::map<std::string, Scalar> scalars;  // by input name
};
Settings settingsOf(const Source& source, const Options& options);

// Returns the source with `sizes` as the defaults of its sizes. Runs use the defaults for sizes
// that the inputs do not determine, such as factors of an extent. The defaults also affect how a
// fusion is lowered, in the same way on all ranks.
Source withSizes(Source source, const SizeBindings& sizes);

// The unsharded inputs of a run. An input comes from its .npy file if one is given, otherwise its
// values come from the seed. Sizes that the files determine are added to `sizes`. The inputs are
// the same on every rank.
struct Inputs {
  // Per input. A scalar has no tensor. A tensor without data, and with sizes if they are known, has
  // the values of randomTensor() with `seed` and the name of the input.
  std::vector<HostTensor> tensors;
  std::vector<Scalar> scalars;  // per input; unused for tensors
  SizeBindings sizes;
  uint64_t seed = 0;
};
Inputs makeInputs(const Source& source, const Options& options);

// Throws UserError if a symbol in the sizes of the file's tensors has no value. The error names the
// symbol.
void requireSizes(const Source& source, const SizeBindings& sizes);

// The first steps of host::compile(). host::runPasses() turns `program` into the compiled program.
struct Lowered {
  SegmentedFusion segmented;
  host::Program program;
};

// Does these steps for a command that shows their results, so that no step runs twice.
Lowered lowered(const Fusion& fusion, int ranks, const host::PassOptions& passes,
                const SegmentOptions& library);

}  // namespace heddle::tools
