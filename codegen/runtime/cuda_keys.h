// Maps the elements of a line (cuda_lines.h) to unsigned integers (keys) whose ascending order is
// the order of the sort, and loads and stores lines of keys. The *index* of an element is its
// position in its line. In a kernel source, this text follows cuda_lines.h.

namespace hdl {

constexpr int kDigits = 256;           // values of one digit of 8 bits
constexpr int kWarpLine = 256;         // longest line that a warp sorts
constexpr int kTile = 4096;            // elements that a block holds at a time
constexpr U32 kNoIndex = 0xffffffffu;  // stored instead of an index after the end of a line
constexpr U32 kAllLanes = 0xffffffffu;

// The rule by which the bits of an element become a key K, which has 32 or 64 bits.
template <class K>
struct KeyRule {
  bool real;   // the element is a float
  int shift;   // f16 and bf16: 16, because their bits become the upper half of the key
  K infinity;  // floats: the shifted bits of infinity; if the other bits than the sign are larger,
               // the element is NaN
  K most;      // upper limit of the bits; bool: 1, integers: all ones (no limit)
  K turned;    // mask of the key bits that are inverted at the end of keyOf()
};
template <class K>
__device__ inline KeyRule<K> keyRuleOf(I64 type, I64 flip) {
  const K sign = (K)1 << (8 * sizeof(K) - 1);
  KeyRule<K> rule = {isFloatType(type), 0, 0, (K) ~(K)0, (K)flip};
  if (type == kBF16 || type == kF16) rule.shift = 16;
  if (type == kBF16 || type == kF32) rule.infinity = (K)0x7f800000u;
  if (type == kF16) rule.infinity = (K)0x7c000000u;
  if (type == kF64) rule.infinity = (K)0x7ff0000000000000ull;
  if (type == kBool) rule.most = 1;
  if (type == kI8) rule.turned ^= 0x80u;
  if (type == kI32 || type == kI64) rule.turned ^= sign;
  return rule;
}
template <class K>
__device__ inline K keyOf(const KeyRule<K>& rule, K bits) {
  const K sign = (K)1 << (8 * sizeof(K) - 1);
  K key = bits < rule.most ? bits : rule.most;
  if (rule.real) {
    bits <<= rule.shift;
    const K size = bits & ~sign;
    key = bits != size ? ~bits : bits | sign;
    if (size == 0) key = sign;  // -0 equals 0
    if (size > rule.infinity) key = (K) ~(K)0;
  }
  return key ^ rule.turned;
}
// Returns the key of `bits`, an element of the index tensor of a scatter. The element is a position
// along the axis of the scatter. The positions in the block of the result that this rank holds are
// targets. Targets are numbered from 0, and target 0 is the position `first_target`. The key is the
// number of the target, or `extent` if the position is not a target.
__device__ inline U64 keyOfIndex(const Args& args, U64 bits) {
  const U64 index = args.index_type == kI32 ? (U64)(I64)(int)bits : bits;
  // The unsigned difference wraps. An index before first_target thus becomes larger than every
  // target.
  const U64 target = index - (U64)args.first_target;
  return target < (U64)args.extent ? target : (U64)args.extent;
}

// Where an unsorted line begins, and the stride of the line, in elements. The line consists of
// elements of a tensor, of elements of an index tensor, or of keys with their indices.
struct Source {
  I64 begin;
  I64 stride;
};
__device__ inline Source sourceOf(const Args& args, I64 line) {
  if (args.by_keys != 0) return {line * args.n, 1};
  const int operand = args.by_index != 0 ? 2 : 1;
  return {offsetOf(args.lines, operand, args.first_line + line), args.axis_strides[operand]};
}

template <class R, class K, int J>
__device__ __forceinline__ void loadBits(const void* from, const Source& source, I64 first,
                                         int step, I64 end, K (&bits)[J]) {
  const R* at = (const R*)from + source.begin + first * source.stride;
  const I64 next = step * source.stride;
  HDL_UNROLL
  for (int j = 0; j < J; ++j) bits[j] = first + j * step < end ? (K)at[j * next] : (K)0;
}
template <class K, int J>
__device__ __forceinline__ void takeTargets(const Args& args, const Source& source, I64 first,
                                            int step, I64 end, K (&key)[J]) {
  U64 bits[J];
  if (args.index_type == kI64) {
    loadBits<U64>(args.in[1], source, first, step, end, bits);
  } else {
    loadBits<U32>(args.in[1], source, first, step, end, bits);
  }
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    key[j] = (K)keyOfIndex(args, bits[j]);
  }
}
template <class K, int J>
__device__ __forceinline__ void takeElements(const Args& args, const Source& source, I64 first,
                                             int step, I64 end, K (&key)[J]) {
  switch (args.in_type) {
    case kI64:
    case kF64:
      loadBits<U64>(args.in[0], source, first, step, end, key);
      break;
    case kI32:
    case kF32:
      loadBits<U32>(args.in[0], source, first, step, end, key);
      break;
    case kBF16:
    case kF16:
      loadBits<unsigned short>(args.in[0], source, first, step, end, key);
      break;
    default:
      loadBits<unsigned char>(args.in[0], source, first, step, end, key);
  }
  const KeyRule<K> rule = keyRuleOf<K>(args.in_type, args.flip);
  HDL_UNROLL
  for (int j = 0; j < J; ++j) key[j] = keyOf(rule, key[j]);
}
// Loads J elements of a line, at the positions `first`, `first + step`, ..., as keys with their
// indices. For positions at or after `end`, the key is the largest possible key, which sorts last.
// The function issues all loads before it uses any of the loaded values.
template <class K, int J>
__device__ __forceinline__ void take(const Args& args, const Source& source, I64 first, int step,
                                     I64 end, K (&key)[J], U32 (&index)[J]) {
  if (args.by_keys != 0) {
    const Source dense = {source.begin, 1};
    loadBits<K>(args.keys[args.from], dense, first, step, end, key);
    loadBits<U32>(args.indices[args.from], dense, first, step, end, index);
  } else if (args.by_index != 0) {
    takeTargets(args, source, first, step, end, key);
  } else {
    takeElements(args, source, first, step, end, key);
  }
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const I64 i = first + j * step;
    if (i >= end) {
      key[j] = (K) ~(K)0;
      index[j] = kNoIndex;
    } else if (args.by_keys == 0) {
      index[j] = (U32)i;
    }
  }
}

// Where a sorted line is stored, and the stride of the line, in elements. If Args::to_keys is not
// 0, put() stores the keys and indices of the line. Otherwise put() stores the first `extent`
// indices of the line as the result of argsort.
struct Target {
  I64 begin;
  I64 stride;
};
__device__ inline Target targetOf(const Args& args, I64 line) {
  if (args.to_keys != 0) return {line * args.n, 1};
  return {offsetOf(args.lines, 0, args.first_line + line), args.axis_strides[0]};
}
template <class K>
__device__ inline void put(const Args& args, const Target& target, I64 i, K key, U32 index) {
  const I64 to = target.begin + i * target.stride;
  if (args.to_keys != 0) {
    ((K*)args.keys[args.from])[to] = key;
    args.indices[args.from][to] = index;
  } else if (i < args.extent) {
    ((I64*)args.out)[to] = (I64)index;
  }
}

// Writes the keys and indices of a group of lines to keys[0] and indices[0].
template <class K>
__device__ void makeKeys(const Args& args) {
  constexpr int J = 4;
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 begin = (item - line * args.chunks) * kTile;
    const I64 end = args.n - begin < kTile ? args.n : begin + kTile;
    const Source source = sourceOf(args, line);
    for (I64 first = begin + threadIdx.x; first < end; first += J * kThreads) {
      K key[J];
      U32 index[J];
      take(args, source, first, kThreads, end, key, index);
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        const I64 i = first + j * kThreads;
        if (i < end) {
          ((K*)args.keys[0])[line * args.n + i] = key[j];
          args.indices[0][line * args.n + i] = index[j];
        }
      }
    }
  }
}

}  // namespace hdl
