#include "codegen/compile/load_image.h"

#include "codegen/compile/elf_file.h"
#include "codegen/compile/load_library.h"
#include "ir/base/check.h"

namespace heddle::codegen {

std::shared_ptr<const KernelImage> loadImage(Target target, const std::vector<std::string>& entries,
                                             std::string_view bytes, int file) {
  auto image = std::make_shared<KernelImage>();
  image->size = static_cast<int64_t>(bytes.size());
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  if (target == Target::Cuda) {
    image->bytes.assign(begin, begin + bytes.size());
  } else {
    image->library = file >= 0 ? loadLibrary(file) : loadLibrary({begin, bytes.size()});
  }
  for (const std::string& entry : entries) {
    std::string fault;
    if (target == Target::Cuda) {
      fault = faultOfCubin(bytes, entry);
    } else if (findEntry(image->library, entry) == nullptr) {
      fault = "it has no kernel " + entry;
    }
    HEDDLE_USER_CHECK_CODE(CompileFailure, fault.empty(),
                           "the image of {} bytes cannot be used: {}", bytes.size(), fault);
  }
  return image;
}

}  // namespace heddle::codegen
