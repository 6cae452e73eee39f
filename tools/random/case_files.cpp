#include "tools/random/case_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "ir/types/npy.h"
#include "tools/random/rebuild.h"

namespace heddle::random {
namespace {

void writeLayouts(const FusionCase& fusion_case, const std::string& path) {
  const std::vector<InputLayout> dense = denseLayouts(fusion_case);
  std::ofstream file(path + ".layouts");
  for (size_t i = 0; i < dense.size(); ++i) {
    const InputLayout& layout = fusion_case.layouts[i];
    if (layout == dense[i]) continue;
    file << fusion_case.fusion.value(fusion_case.fusion.inputs()[i]).name << " " << layout.offset;
    for (int64_t stride : layout.strides) file << " " << stride;
    file << "\n";
  }
}

void readLayouts(FusionCase& fusion_case, const std::string& path) {
  std::ifstream file(path + ".layouts");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    InputLayout layout;
    words >> name >> layout.offset;
    layout.strides.assign(std::istream_iterator<int64_t>(words), {});
    for (size_t i = 0; i < fusion_case.layouts.size(); ++i) {
      const Value& value = fusion_case.fusion.value(fusion_case.fusion.inputs()[i]);
      if (value.name == name) fusion_case.layouts[i] = layout;
    }
  }
}

}  // namespace

void writeCase(const FusionCase& fusion_case, const std::string& path) {
  std::ofstream(path + ".fusion") << print(withScalarDefaults(fusion_case).fusion);
  for (const auto& [id, tensor] : fusion_case.inputs.tensors) {
    writeNpy(path + "." + fusion_case.fusion.value(id).name + ".npy", tensor);
  }
  writeLayouts(fusion_case, path);
}

FusionCase readCase(const std::string& fusion_file) {
  std::ifstream file(fusion_file, std::ios::binary);
  HEDDLE_USER_CHECK(file.good(), "{}: cannot read the file", fusion_file);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string path = std::filesystem::path(fusion_file).replace_extension().string();
  FusionCase result;
  result.fusion = parseFusion(text, fusion_file);
  result.sizes =
      SizeBindings(result.fusion.size_defaults.begin(), result.fusion.size_defaults.end());
  for (ValueId id : result.fusion.inputs()) {
    const Value& value = result.fusion.value(id);
    if (value.is_scalar) {
      HEDDLE_USER_CHECK(value.default_value.has_value(), "{}: scalar %{} has no default",
                        fusion_file, value.name);
      result.inputs.scalars[id] = *value.default_value;
    } else {
      result.inputs.tensors[id] = readNpy(path + "." + value.name + ".npy", value.tensor.dtype);
    }
  }
  result.layouts = denseLayouts(result);
  readLayouts(result, path);
  return result;
}

std::string replayCommand(const FusionCase& fusion_case, const std::string& path) {
  std::string command = "heddle run " + path + ".fusion";
  for (ValueId id : fusion_case.fusion.inputs()) {
    const Value& value = fusion_case.fusion.value(id);
    if (!value.is_scalar) {
      command += fmt::format(" --input {0}={1}.{0}.npy", value.name, path);
    }
  }
  return command + " --check=full";
}

}  // namespace heddle::random
