#include "tools/heddle/gather.h"

#include <fmt/format.h>

#include <cstring>

namespace heddle::tools {
namespace {

// A block as it travels: offsets, sizes, elements; nothing from a rank that holds none.
std::string encode(const HostTensor& local, const TensorDesc& desc) {
  std::string bytes;
  if (!desc.held) return bytes;
  auto append = [&](const std::vector<int64_t>& list) {
    bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(int64_t));
  };
  append(desc.offset);
  append(desc.sizes);
  bytes.append(reinterpret_cast<const char*>(local.data.get()), static_cast<size_t>(local.bytes()));
  return bytes;
}

std::vector<int64_t> decodeList(const std::string& bytes, size_t position, size_t rank) {
  std::vector<int64_t> list(rank);
  std::memcpy(list.data(), bytes.data() + position * rank * sizeof(int64_t),
              rank * sizeof(int64_t));
  return list;
}

// Which elements of the whole are written already.
struct Assembly {
  HostTensor whole;
  std::vector<bool> filled;
};

bool place(Assembly& assembly, const std::string& bytes) {
  if (bytes.empty()) return true;
  const size_t rank = assembly.whole.sizes.size();
  const std::vector<int64_t> offset = decodeList(bytes, 0, rank);
  const std::vector<int64_t> sizes = decodeList(bytes, 1, rank);
  const auto width = static_cast<size_t>(sizeOf(assembly.whole.dtype));
  const char* elements = bytes.data() + 2 * rank * sizeof(int64_t);
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  auto* data = reinterpret_cast<char*>(assembly.whole.data.get());
  bool agrees = true;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t target = 0;
    int64_t stride = 1;
    for (size_t axis = rank; axis-- > 0;) {
      target += (offset[axis] + rest % sizes[axis]) * stride;
      rest /= sizes[axis];
      stride *= assembly.whole.sizes[axis];
    }
    char* to = data + static_cast<size_t>(target) * width;
    const char* from = elements + static_cast<size_t>(i) * width;
    if (assembly.filled[static_cast<size_t>(target)]) {
      agrees = agrees && std::memcmp(to, from, width) == 0;
      continue;
    }
    assembly.filled[static_cast<size_t>(target)] = true;
    std::memcpy(to, from, width);
  }
  return agrees;
}

}  // namespace

HostTensor gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                        std::string& differs) {
  if (world.size() == 1) return local;
  const std::vector<std::string> blocks = world.exchange(encode(local, desc));
  if (world.rank() != 0) return {};
  Assembly assembly{HostTensor(desc.dtype, desc.global), {}};
  assembly.filled.resize(static_cast<size_t>(assembly.whole.numel()));
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    if (place(assembly, blocks[rank])) continue;
    differs += fmt::format("{}rank {}", differs.empty() ? "" : ", ", rank);
  }
  return assembly.whole;
}

}  // namespace heddle::tools
