#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "host/program/program.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/options.h"

namespace heddle::tools {

// A fusion or a host program, read from a file.
using Source = std::variant<Fusion, host::Program>;

// UserError when the file cannot be read or does not parse.
Source readSource(const std::string& path);

// One input as the user named it.
struct InputSpec {
  std::string name;
  bool is_scalar = false;
  TensorView tensor;
  std::optional<Scalar> default_value;
};
std::vector<InputSpec> inputsOf(const Source& source);

// What --set gave, sorted into sizes and scalars.
struct Settings {
  SizeBindings sizes;                     // with the file's defaults behind them
  std::map<std::string, Scalar> scalars;  // by input name
};
Settings settingsOf(const Source& source, const Options& options);

// With these as the defaults of its sizes: what inputs do not tell, as a factor of their sizes may
// be, is what the file says, and the defaults decide how a fusion is lowered, on all ranks alike.
Source withSizes(Source source, const SizeBindings& sizes);

// The unsharded inputs of a run: npy files where given, else filled from the seed. Sizes that the
// files fix are put into `settings`. The same on every rank.
struct Inputs {
  std::vector<HostTensor> tensors;  // per input; empty for scalars
  std::vector<Scalar> scalars;      // per input; unused for tensors
  SizeBindings sizes;
};
Inputs makeInputs(const Source& source, const Options& options);

// Sizes of the symbols that the file's tensors use and nothing gives a value: UserError names them.
void requireSizes(const Source& source, const SizeBindings& sizes);

}  // namespace heddle::tools
