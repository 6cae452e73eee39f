#include "tools/heddle/gather.h"

#include <cstring>

namespace heddle::tools {
namespace {

// Encodes a block for the exchange between ranks as offsets, sizes and elements. A rank that holds
// no block sends an empty string.
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
  if (rank == 0) return {};
  std::vector<int64_t> list(rank);
  std::memcpy(list.data(), bytes.data() + position * rank * sizeof(int64_t),
              rank * sizeof(int64_t));
  return list;
}

Block decode(const std::string& bytes, int rank, const TensorDesc& desc) {
  const size_t axes = desc.global.size();
  Block block{rank, decodeList(bytes, 0, axes), HostTensor(desc.dtype, decodeList(bytes, 1, axes))};
  std::memcpy(block.data.data.get(), bytes.data() + 2 * axes * sizeof(int64_t),
              static_cast<size_t>(block.data.bytes()));
  return block;
}

// Copies the elements of block `index` that `all.whole` does not have yet. If other elements of the
// block differ from `all.whole`, adds an entry to `all.differences`. `filled` says which elements
// of `all.whole` are set.
void place(Gathered& all, std::vector<bool>& filled, size_t index) {
  const Block& block = all.blocks[index];
  const size_t width = sizeOf(all.whole.dtype);
  Gathered::Difference difference{index};
  for (int64_t i = 0; i < block.data.numel(); ++i) {
    const int64_t target = indexInWhole(block, i, all.whole.sizes);
    std::byte* to = all.whole.data.get() + static_cast<size_t>(target) * width;
    const std::byte* from = block.data.data.get() + static_cast<size_t>(i) * width;
    if (!filled[target]) {
      filled[target] = true;
      std::memcpy(to, from, width);
    } else if (std::memcmp(to, from, width) != 0 && difference.count++ == 0) {
      difference.first = target;
    }
  }
  if (difference.count > 0) all.differences.push_back(difference);
}

}  // namespace

int64_t indexInWhole(const Block& block, int64_t local, const std::vector<int64_t>& whole) {
  int64_t linear = 0;
  int64_t stride = 1;
  for (size_t axis = whole.size(); axis-- > 0;) {
    linear += (block.offset[axis] + local % block.data.sizes[axis]) * stride;
    local /= block.data.sizes[axis];
    stride *= whole[axis];
  }
  return linear;
}

int64_t indexInBlock(const Block& block, int64_t linear, const std::vector<int64_t>& whole) {
  int64_t local = 0;
  int64_t stride = 1;
  for (size_t axis = whole.size(); axis-- > 0;) {
    const int64_t at = linear % whole[axis] - block.offset[axis];
    if (at < 0 || at >= block.data.sizes[axis]) return -1;
    local += at * stride;
    linear /= whole[axis];
    stride *= block.data.sizes[axis];
  }
  return local;
}

int Gathered::holderOf(int64_t linear) const {
  for (const Block& block : blocks) {
    if (indexInBlock(block, linear, whole.sizes) >= 0) return block.rank;
  }
  return -1;
}

Gathered gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                      const std::optional<PartialState>& partial) {
  Gathered all;
  if (world.size() == 1) {
    all.whole = local;
    return all;
  }
  const std::vector<std::string> blocks = world.exchange(encode(local, desc));
  if (world.rank() != 0) return all;
  all.whole = HostTensor(desc.dtype, desc.global);
  std::vector<bool> filled(all.whole.numel());
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    if (blocks[rank].empty()) continue;
    all.blocks.push_back(decode(blocks[rank], static_cast<int>(rank), desc));
  }
  if (partial) {
    reduceParts(all.blocks, *partial);
    all.reduced = describe(*partial);
  }
  for (size_t i = 0; i < all.blocks.size(); ++i) place(all, filled, i);
  return all;
}

}  // namespace heddle::tools
