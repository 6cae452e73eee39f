#include "tools/heddle/source.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "host/lower/lower.h"
#include "host/plan/size_inputs.h"
#include "host/program/visit.h"
#include "ir/base/check.h"
#include "ir/base/edit_distance.h"
#include "ir/base/pass_driver.h"
#include "ir/graph/print_values.h"
#include "ir/types/npy.h"

namespace heddle::tools {
namespace {

// Splits the text "name=value" of an option into name and value.
std::pair<std::string, std::string> splitPair(const std::string& option, const std::string& text) {
  const size_t at = text.find('=');
  HEDDLE_USER_CHECK(at != std::string::npos && at > 0 && at + 1 < text.size(),
                    "{} {}: expected NAME=VALUE", option, text);
  std::string name = text.substr(0, at);
  if (name[0] == '%') name.erase(0, 1);
  return {name, text.substr(at + 1)};
}

Scalar parseScalar(const std::string& option, const std::string& text, DType dtype) {
  if (dtype == DType::Bool && (text == "true" || text == "false")) return text == "true";
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  int64_t integer = 0;
  auto [int_rest, int_error] = std::from_chars(text.data(), end, integer);
  if (!isFloat(dtype) && int_rest == end && int_error == std::errc()) {
    const Scalar rounded = roundTo(dtype, integer);
    HEDDLE_USER_CHECK(dtype == DType::Bool || rounded == Scalar(integer),
                      "{}: '{}' is outside the range of {}", option, text, name(dtype));
    return rounded;
  }
  HEDDLE_USER_CHECK(rest == end && error == std::errc() && isFloat(dtype),
                    "{}: '{}' is not a value of type {}", option, text, name(dtype));
  return roundTo(dtype, value);
}

const std::vector<std::pair<std::string, int64_t>>& defaultsOf(const Source& source) {
  if (const Fusion* fusion = std::get_if<Fusion>(&source)) return fusion->size_defaults;
  return std::get<host::Program>(source).size_defaults;
}

std::vector<std::string> symbolsOf(const std::vector<InputSpec>& inputs) {
  std::vector<std::string> symbols;
  std::unordered_set<std::string> seen;
  for (const InputSpec& input : inputs) {
    for (const Size& size : input.tensor.sizes()) size.collectSymbols(symbols, seen);
  }
  return symbols;
}

// If the extent of an axis of an input is a symbol, sets the symbol to the size of this axis in the
// file. `option` is the value of --input that names the file.
void bindFromFile(const std::string& option, const InputSpec& input, const HostTensor& tensor,
                  const Options& options, SizeBindings& sizes) {
  HEDDLE_USER_CHECK(tensor.dtype == input.tensor.dtype,
                    "--input {}: the file holds {}, expected {}", option, name(tensor.dtype),
                    name(input.tensor.dtype));
  HEDDLE_USER_CHECK(tensor.sizes.size() == input.tensor.rank(),
                    "--input {}: the file has sizes {}, expected {} axes", option,
                    str(tensor.sizes), input.tensor.rank());
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const Size& extent = input.tensor.domain[i].extent;
    if (extent.kind() != Size::Kind::Symbol || extent.hasScalar()) continue;
    const std::string& symbol = extent.symbolName();
    for (const std::string& text : options.set) {
      const auto [set_name, value] = splitPair("--set", text);
      if (set_name != symbol) continue;
      const int64_t size = std::get<int64_t>(parseScalar("--set " + text, value, DType::I64));
      HEDDLE_USER_CHECK(size == tensor.sizes[i], "--set {}: axis {} of the file for %{} is {}",
                        text, i, input.name, tensor.sizes[i]);
    }
    sizes[symbol] = tensor.sizes[i];
  }
}

std::map<std::string, HostTensor> readFiles(const std::vector<InputSpec>& inputs,
                                            const Options& options, SizeBindings& sizes) {
  std::map<std::string, HostTensor> files;
  for (const std::string& text : options.input) {
    const auto [name, path] = splitPair("--input", text);
    auto found = std::find_if(inputs.begin(), inputs.end(),
                              [&, &wanted = name](const InputSpec& i) { return i.name == wanted; });
    HEDDLE_USER_CHECK(found != inputs.end() && !found->is_scalar,
                      "--input {}: the file has no tensor input %{}", text, name);
    HEDDLE_USER_CHECK(!files.contains(name), "--input {}: %{} is given twice", text, name);
    HostTensor tensor;
    try {
      tensor = readNpy(path, found->tensor.dtype);
    } catch (const UserError& error) {
      userError("--input {}: {}", text, error.what());
    }
    bindFromFile(text, *found, tensor, options, sizes);
    files[name] = std::move(tensor);
  }
  return files;
}

// Applies defaults such as `with %n = 3` to inputs. The value replaces the one in `%n: i64 = 2`,
// because a dump after `--set %n=3` has both.
void addSizeDefaults(const std::vector<std::pair<std::string, int64_t>>& defaults,
                     std::vector<InputSpec>& inputs) {
  for (const auto& [symbol, value] : defaults) {
    if (!isScalarSymbol(symbol)) continue;
    for (InputSpec& input : inputs) {
      if (input.is_scalar && scalarSymbol(input.name) == symbol) input.default_value = value;
    }
  }
}

std::vector<InputSpec> declaredInputsOf(const Source& source) {
  std::vector<InputSpec> inputs;
  if (const Fusion* fusion = std::get_if<Fusion>(&source)) {
    for (ValueId id : fusion->inputs()) {
      const Value& value = fusion->value(id);
      inputs.push_back({value.name, value.is_scalar, value.tensor, value.default_value});
    }
    return inputs;
  }
  const auto& program = std::get<host::Program>(source);
  for (host::SlotId id : program.inputs) {
    const host::Slot& slot = program.slots[id];
    inputs.push_back({slot.name, slot.is_scalar, slot.tensor, slot.default_value});
  }
  return inputs;
}

}  // namespace

std::vector<InputSpec> inputsOf(const Source& source) {
  std::vector<InputSpec> inputs = declaredInputsOf(source);
  addSizeDefaults(defaultsOf(source), inputs);
  return inputs;
}

namespace {

// The size or the input that the name in a --set means.
struct SetTarget {
  const InputSpec* scalar = nullptr;  // the input; nullptr: the name refers to `size`
  std::string size;
};

bool takesSet(const InputSpec& input, const std::set<std::string>& deciding) {
  return input.is_scalar || deciding.contains(scalarSymbol(input.name));
}

// Finds the size or the input that `name` sets. `%n` always means an input. `size.n` means the size
// n, unless something has the name `size.n`. Throws UserError if `n` may be both, or is neither.
SetTarget targetOf(const std::string& option, const std::string& name,
                   const std::vector<InputSpec>& inputs, const std::set<std::string>& deciding,
                   const std::set<std::string>& symbols) {
  constexpr std::string_view kSize = "size.";
  const bool is_input = name[0] == '%';
  const std::string bare = is_input ? name.substr(1) : name;
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& input) {
    return input.name == bare && takesSet(input, deciding);
  });
  const bool is_known = !is_input && symbols.contains(name);
  if (found != inputs.end()) {
    HEDDLE_USER_CHECK(!is_known,
                      "{}: the file has a size {} and an input %{}; write --set size.{}=N for the "
                      "size, --set %{}=N for the input",
                      option, name, name, name, name);
    return {&*found, {}};
  }
  if (is_known) return {nullptr, name};
  if (name.starts_with(kSize) && symbols.contains(name.substr(kSize.size()))) {
    return {nullptr, name.substr(kSize.size())};
  }
  std::vector<std::string_view> names(symbols.begin(), symbols.end());
  for (const InputSpec& input : inputs) {
    if (takesSet(input, deciding)) names.push_back(input.name);
  }
  userError("{}: the file has no size or scalar input '{}'{}", option, bare,
            suggestionFor(bare, names));
}

// Returns the symbols of inputs in sizes and offsets (host/plan/size_inputs.h).
std::set<std::string> sizeInputsOf(const Source& source) {
  if (const auto* fusion = std::get_if<Fusion>(&source)) return host::SizeInputs(*fusion).symbols();
  const auto& program = std::get<host::Program>(source);
  const auto may_decide = [&](host::SlotId input) {
    const host::Slot& slot = program.slots.at(input);
    return slot.is_scalar || slot.tensor.rank() == 0;
  };
  if (std::none_of(program.inputs.begin(), program.inputs.end(), may_decide)) return {};
  return host::SizeInputs(host::inlineCalls(program)).symbols();
}

}  // namespace

Settings settingsOf(const Source& source, const Options& options) {
  // Set all defaults first, so that --set replaces them.
  Settings settings;
  for (const auto& [symbol, value] : defaultsOf(source)) settings.sizes[symbol] = value;
  const std::vector<InputSpec> inputs = inputsOf(source);
  settings.deciding = sizeInputsOf(source);
  const std::set<std::string>& deciding = settings.deciding;
  const std::vector<std::string> of_inputs = symbolsOf(inputs);
  std::set<std::string> symbols(of_inputs.begin(), of_inputs.end());
  for (const auto& [symbol, size] : settings.sizes) symbols.insert(symbol);
  for (const InputSpec& input : inputs) {
    if (!input.default_value || !deciding.contains(scalarSymbol(input.name))) continue;
    settings.sizes.emplace(scalarSymbol(input.name), toInt(*input.default_value));
  }
  std::map<std::string, std::string> seen;  // per size or input: the text that sets it
  for (const std::string& text : options.set) {
    const std::string option = "--set " + text;
    const auto [name, value] = splitPair("--set", text);
    const SetTarget target =
        targetOf(option, text[0] == '%' ? "%" + name : name, inputs, deciding, symbols);
    const std::string set =
        target.scalar != nullptr ? scalarSymbol(target.scalar->name) : target.size;
    const auto [earlier, is_first] = seen.emplace(set, text);
    HEDDLE_USER_CHECK(is_first, "{}: '{}' is set twice, first with --set {}", option, name,
                      earlier->second);
    if (target.scalar != nullptr) {
      const Scalar scalar = parseScalar(option, value, target.scalar->tensor.dtype);
      settings.scalars[target.scalar->name] = scalar;
      if (deciding.contains(set)) settings.sizes[set] = toInt(scalar);
      continue;
    }
    const int64_t size = std::get<int64_t>(parseScalar(option, value, DType::I64));
    HEDDLE_USER_CHECK(size >= 0, "{}: a size cannot be negative", option);
    settings.sizes[target.size] = size;
  }
  return settings;
}

Source withSizes(Source source, const SizeBindings& sizes) {
  auto* fusion = std::get_if<Fusion>(&source);
  auto& defaults =
      fusion != nullptr ? fusion->size_defaults : std::get<host::Program>(source).size_defaults;
  std::unordered_map<std::string, size_t> positions;
  for (size_t i = 0; i < defaults.size(); ++i) positions.try_emplace(defaults[i].first, i);
  for (const auto& [symbol, size] : sizes) {
    if (const auto known = positions.find(symbol); known != positions.end()) {
      defaults[known->second].second = size;
    } else if (fusion != nullptr || isScalarSymbol(symbol)) {
      defaults.emplace_back(symbol, size);
    }
  }
  return source;
}

namespace {

// Returns whether the source has a scalar input with this name. A size may have the same name, and
// --set then needs a prefix.
bool isScalarInput(const Source& source, const std::string& name) {
  const std::vector<InputSpec> inputs = inputsOf(source);
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputSpec& input) { return input.is_scalar && input.name == name; });
}

bool isSize(const std::vector<InputSpec>& inputs, const std::string& name) {
  const auto symbols = symbolsOf(inputs);
  return std::find(symbols.begin(), symbols.end(), name) != symbols.end();
}

}  // namespace

void requireSizes(const Source& source, const SizeBindings& sizes) {
  for (const std::string& symbol : symbolsOf(inputsOf(source))) {
    const bool reserved = symbol == "rank" || symbol == "ranks" || symbol[0] == '@';
    HEDDLE_USER_CHECK(reserved || sizes.contains(symbol),
                      "size '{}' has no default; give it with --set {}{}=N", symbol,
                      isScalarInput(source, symbol) ? "size." : "", symbol);
  }
}

namespace {

// Returns the unsharded sizes of an input, or nullopt if they depend on symbols without a value,
// such as `ranks`.
std::optional<std::vector<int64_t>> sizesIn(const InputSpec& input, const SizeBindings& sizes) {
  std::vector<int64_t> values;
  std::vector<std::string> symbols;
  for (const Size& size : input.tensor.sizes()) {
    size.collectSymbols(symbols);
    for (const std::string& symbol : symbols) {
      if (!sizes.contains(symbol)) return std::nullopt;
    }
    values.push_back(size.evaluate(lookupIn(sizes)));
  }
  return values;
}

// Throws UserError if the sizes of an .npy file differ from the sizes of its input, after all
// symbols have their values.
void checkFileSizes(const std::vector<InputSpec>& inputs,
                    const std::map<std::string, HostTensor>& files, const SizeBindings& sizes,
                    const Options& options) {
  for (const std::string& text : options.input) {
    const std::string input_name = splitPair("--input", text).first;
    const auto spec = std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& input) {
      return input.name == input_name;
    });
    const auto expected = sizesIn(*spec, sizes);
    const std::vector<int64_t>& found = files.at(input_name).sizes;
    HEDDLE_USER_CHECK(!expected || found == *expected,
                      "--input {}: the file has sizes {}, expected {} for %{}: {} in {}", text,
                      str(found), str(*expected), input_name, printShape(spec->tensor),
                      options.file);
  }
}

}  // namespace

namespace {

// Returns the value of a tensor without axes whose value occurs in sizes or offsets. The value
// comes from --set, from the .npy file `file` or from a default. A random value would seldom be
// useful.
HostTensor sizeTensor(const InputSpec& spec, const Settings& settings, const HostTensor* file) {
  const auto given = settings.scalars.find(spec.name);
  HEDDLE_USER_CHECK(given == settings.scalars.end() || file == nullptr,
                    "input %{} is given by --set and by --input", spec.name);
  if (file != nullptr) return *file;
  const auto size = settings.sizes.find(scalarSymbol(spec.name));
  HEDDLE_USER_CHECK(size != settings.sizes.end(),
                    "input %{} decides sizes or offsets and has no default; give it with --set "
                    "{}=VALUE or --input {}=FILE",
                    spec.name, spec.name, spec.name);
  const Scalar value = roundTo(spec.tensor.dtype, size->second);
  HEDDLE_USER_CHECK(toInt(value) == size->second,
                    "input %{}: the default {} is outside the range of {}", spec.name, size->second,
                    name(spec.tensor.dtype));
  HostTensor tensor(spec.tensor.dtype, {});
  tensor.set(0, value);
  return tensor;
}

}  // namespace

Inputs makeInputs(const Source& source, const Options& options) {
  const std::vector<InputSpec> specs = inputsOf(source);
  Settings settings = settingsOf(source, options);
  // Read the files before checking sizes, because the files determine sizes.
  std::map<std::string, HostTensor> files = readFiles(specs, options, settings.sizes);
  requireSizes(source, settings.sizes);
  checkFileSizes(specs, files, settings.sizes, options);
  Inputs inputs;
  inputs.sizes = settings.sizes;
  inputs.seed = options.seed;
  for (const InputSpec& spec : specs) {
    inputs.tensors.emplace_back();
    inputs.scalars.emplace_back(int64_t{0});
    if (spec.is_scalar) {
      auto given = settings.scalars.find(spec.name);
      HEDDLE_USER_CHECK(given != settings.scalars.end() || spec.default_value,
                        "scalar input %{} has no default; give it with --set {}{}=VALUE", spec.name,
                        isSize(specs, spec.name) ? "%" : "", spec.name);
      inputs.scalars.back() = given != settings.scalars.end() ? given->second : *spec.default_value;
      continue;
    }
    const auto file = files.find(spec.name);
    if (settings.deciding.contains(scalarSymbol(spec.name))) {
      inputs.tensors.back() =
          sizeTensor(spec, settings, file == files.end() ? nullptr : &file->second);
      inputs.sizes[scalarSymbol(spec.name)] = toInt(inputs.tensors.back().at(0));
      continue;
    }
    if (file != files.end()) {
      inputs.tensors.back() = file->second;
      continue;
    }
    if (std::holds_alternative<host::Program>(source)) continue;  // sizes may depend on the job
    HostTensor& tensor = inputs.tensors.back();
    tensor.dtype = spec.tensor.dtype;
    for (const Size& size : spec.tensor.sizes()) {
      tensor.sizes.push_back(size.evaluate(lookupIn(settings.sizes)));
    }
  }
  return inputs;
}

Lowered lowered(const Fusion& fusion, int ranks, const host::PassOptions& passes,
                const SegmentOptions& library) {
  const Fusion ready = host::runFusionPasses(fusion, ranks, passes);
  Lowered steps;
  steps.segmented = timedPass(passes, "segment", [&] { return segment(ready, library); });
  steps.program = timedPass(passes, "lower", [&] { return host::lower(steps.segmented, ranks); });
  return steps;
}

}  // namespace heddle::tools
