// CUDA kernels of the library functions that heddle has itself: cumsum, argsort, scatter and
// scatter_add (host/library_steps.h launches them and says what they need), behind the text of
// cuda_elements.h. Nothing depends on the order in which blocks or threads run; no sum is made by
// atomics.

namespace hdl {

// The host fills this struct: LibraryArgs of host/library_steps.h, member by member.
struct Lines {
  I64 count;
  I64 axes;
  I64 sizes[8];  // outermost first
  I64 strides[4][8];
};
struct Args {
  void* out;
  const void* in[3];
  Lines lines;
  Lines lanes;
  I64 axis_strides[4];
  void* keys[2];
  U32* places[2];
  U32* starts;
  I64* counts;
  void* totals;
  I64 n;
  I64 extent;
  I64 first_target;
  I64 first_line;
  I64 group;
  I64 chunk;
  I64 chunks;
  I64 from;
  I64 shift;
  I64 order;
  I64 in_type;
  I64 out_type;
  I64 index_type;
  I64 flip;
  I64 add;
  I64 by_index;
};

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kItems = 4;  // neighbours of a line that a thread scans
constexpr int kDigits = 256;
constexpr int kShort = 2048;  // a line that one block sorts

// --- places --------------------------------------------------------------------------------------

// Where line `line` of an operand begins, in elements.
__device__ inline I64 offsetOf(const Lines& lines, int operand, I64 line) {
  I64 offset = 0;
  for (int axis = (int)lines.axes - 1; axis >= 0; --axis) {
    I64 next = axis == 0 ? 0 : line / lines.sizes[axis];
    offset += (line - next * lines.sizes[axis]) * lines.strides[operand][axis];
    line = next;
  }
  return offset;
}

__device__ inline I64 firstItem() { return (I64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline I64 itemStep() { return (I64)gridDim.x * blockDim.x; }

// --- cumsum --------------------------------------------------------------------------------------

// The sum over the threads before this one; `total`: over all. Ends behind a barrier, and another
// one must follow before the next call.
template <class V>
__device__ V sumBefore(V own, V* shared, V& total) {
  int lane = (int)threadIdx.x % 32;
  int warp = (int)threadIdx.x / 32;
  V inclusive = own;
  for (int step = 1; step < 32; step *= 2) {
    V other = __shfl_up_sync(0xffffffffu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  if (lane == 31) shared[warp] = inclusive;
  V before = __shfl_up_sync(0xffffffffu, inclusive, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  V earlier = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) earlier = total;
    total += shared[w];
  }
  return earlier + before;
}

// One chunk of one line. Each element is read and written by one thread, so it works in place.
template <class V>
__device__ void scanChunk(const Args& args, I64 line, I64 chunk, V* shared) {
  const I64 in = offsetOf(args.lines, 1, line);
  const I64 out = offsetOf(args.lines, 0, line);
  const I64 begin = chunk * args.chunk;
  const I64 end = begin + args.chunk < args.n ? begin + args.chunk : args.n;
  V carry = 0;
  if (args.totals != 0 && chunk > 0) carry = ((const V*)args.totals)[line * args.chunks + chunk - 1];
  for (I64 tile = begin; tile < end; tile += kThreads * kItems) {
    const I64 first = tile + (I64)threadIdx.x * kItems;
    V value[kItems];
    V own = 0;
    for (int k = 0; k < kItems; ++k) {
      value[k] = 0;
      if (first + k < end) {
        value[k] = loadAs(V(), args.in_type, args.in[0], in + (first + k) * args.axis_strides[1]);
      }
      own += value[k];
    }
    V total;
    V sum = sumBefore(own, shared, total);
    sum += carry;
    for (int k = 0; k < kItems; ++k) {
      sum += value[k];
      if (first + k < end) {
        storeAs(args.out_type, args.out, out + (first + k) * args.axis_strides[0], sum);
      }
    }
    carry += total;
    __syncthreads();
  }
}

template <class V>
__device__ void scanChunks(const Args& args) {
  __shared__ V shared[kWarps];
  for (I64 item = blockIdx.x; item < args.lines.count * args.chunks; item += gridDim.x) {
    scanChunk(args, item / args.chunks, item % args.chunks, shared);
  }
}

// totals[line][chunk] = the sum of the chunk.
template <class V>
__device__ void addChunks(const Args& args) {
  __shared__ V shared[kWarps];
  for (I64 item = blockIdx.x; item < args.lines.count * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 begin = (item % args.chunks) * args.chunk;
    const I64 end = begin + args.chunk < args.n ? begin + args.chunk : args.n;
    const I64 in = offsetOf(args.lines, 1, line);
    V own = 0;
    for (I64 i = begin + threadIdx.x; i < end; i += kThreads) {
      own += loadAs(V(), args.in_type, args.in[0], in + i * args.axis_strides[1]);
    }
    V total;
    sumBefore(own, shared, total);
    if (threadIdx.x == 0) ((V*)args.totals)[item] = total;
    __syncthreads();
  }
}

// A line a thread: neighbouring lines lie side by side.
template <class V>
__device__ void scanColumns(const Args& args) {
  for (I64 line = firstItem(); line < args.lines.count; line += itemStep()) {
    I64 in = offsetOf(args.lines, 1, line);
    I64 out = offsetOf(args.lines, 0, line);
    V sum = 0;
    for (I64 i = 0; i < args.n; ++i) {
      sum += loadAs(V(), args.in_type, args.in[0], in);
      storeAs(args.out_type, args.out, out, sum);
      in += args.axis_strides[1];
      out += args.axis_strides[0];
    }
  }
}

// --- keys: unsigned integers in the order of the elements ----------------------------------------

__device__ inline U32 keyOfFloat(float x) {
  if (x != x) return 0xffffffffu;
  if (x == 0.0f) return 0x80000000u;  // -0 is 0
  U32 bits = __float_as_uint(x);
  return (bits >> 31) != 0u ? ~bits : bits | 0x80000000u;
}
__device__ inline U64 keyOfDouble(double x) {
  const U64 sign = 0x8000000000000000ull;
  if (x != x) return ~0ull;
  if (x == 0.0) return sign;
  U64 bits = (U64)__double_as_longlong(x);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

// As many bits as the host says: 8 for bool and the 8-bit integers, else 32, or 64.
__device__ inline U64 keyOf(I64 type, const void* from, I64 i) {
  switch (type) {
    case kBool:
    case kU8: return loadAs(U64(), type, from, i);
    case kI8: return ((const unsigned char*)from)[i] ^ 0x80u;
    case kI32: return ((const U32*)from)[i] ^ 0x80000000u;
    case kI64: return ((const U64*)from)[i] ^ 0x8000000000000000ull;
    case kF64: return keyOfDouble(((const double*)from)[i]);
    default: return keyOfFloat((float)loadAs(double(), type, from, i));
  }
}

// keys[0] and places[0] of a group of lines. Of an index the key is the target it names, or `extent`
// when it names none.
template <class K>
__device__ void makeKeys(const Args& args) {
  K* keys = (K*)args.keys[0];
  for (I64 item = firstItem(); item < args.group * args.n; item += itemStep()) {
    const I64 line = item / args.n;
    const I64 i = item - line * args.n;
    const int operand = args.by_index != 0 ? 2 : 1;
    const I64 at = offsetOf(args.lines, operand, args.first_line + line) + i * args.axis_strides[operand];
    U64 key;
    if (args.by_index != 0) {
      // Targets that lie before the first one wrap around to beyond the last.
      const U64 target = loadAs(U64(), args.index_type, args.in[1], at) - (U64)args.first_target;
      key = target < (U64)args.extent ? target : (U64)args.extent;
    } else {
      key = keyOf(args.in_type, args.in[0], at) ^ (U64)args.flip;
    }
    keys[item] = (K)key;
    args.places[0][item] = (U32)i;
  }
}

// --- sorting: stable, lines of keys[from] and places[from] ---------------------------------------

// Lines of up to kShort: bitonic, by key and then by place. `chunk`: the power of two that holds n.
template <class K>
__device__ void sortShort(const Args& args) {
  __shared__ K keys[kShort];
  __shared__ U32 places[kShort];
  const int padded = (int)args.chunk;
  for (I64 line = blockIdx.x; line < args.group; line += gridDim.x) {
    K* line_keys = (K*)args.keys[0] + line * args.n;
    U32* line_places = args.places[0] + line * args.n;
    for (int i = (int)threadIdx.x; i < padded; i += kThreads) {
      keys[i] = i < args.n ? line_keys[i] : (K)~(K)0;
      places[i] = (U32)i;
    }
    __syncthreads();
    for (int size = 2; size <= padded; size *= 2) {
      for (int step = size / 2; step > 0; step /= 2) {
        for (int t = (int)threadIdx.x; t < padded / 2; t += kThreads) {
          const int low = 2 * t - (t & (step - 1));
          const int high = low + step;
          const bool up = (low & size) == 0;
          const bool above =
              keys[low] > keys[high] || (keys[low] == keys[high] && places[low] > places[high]);
          if (above == up) {
            const K key = keys[low];
            keys[low] = keys[high];
            keys[high] = key;
            const U32 place = places[low];
            places[low] = places[high];
            places[high] = place;
          }
        }
        __syncthreads();
      }
    }
    for (int i = (int)threadIdx.x; i < args.n; i += kThreads) {
      line_keys[i] = keys[i];
      line_places[i] = places[i];
    }
    __syncthreads();
  }
}

template <class K>
__device__ inline int digitOf(const Args& args, I64 at) {
  return (int)((((const K*)args.keys[args.from])[at] >> args.shift) & (kDigits - 1));
}

// counts[line][digit][chunk] = how often the chunk holds the digit.
template <class K>
__device__ void countDigits(const Args& args) {
  __shared__ U32 found[kDigits];
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 chunk = item - line * args.chunks;
    const I64 begin = chunk * args.chunk;
    const I64 end = begin + args.chunk < args.n ? begin + args.chunk : args.n;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (I64 i = begin + threadIdx.x; i < end; i += kThreads) {
      atomicAdd(&found[digitOf<K>(args, line * args.n + i)], 1u);
    }
    __syncthreads();
    args.counts[(line * kDigits + threadIdx.x) * args.chunks + chunk] = found[threadIdx.x];
    __syncthreads();
  }
}

// Moves the elements of each chunk to where the summed counts say; each warp has a stretch of the
// chunk, in which it takes 32 neighbours at a time.
template <class K>
__device__ void moveByDigit(const Args& args) {
  __shared__ U32 before[kWarps][kDigits];  // counts of each warp, then of the warps before it
  __shared__ I64 base[kDigits];
  const int lane = (int)threadIdx.x % 32;
  const int warp = (int)threadIdx.x / 32;
  const K* keys = (const K*)args.keys[args.from];
  const U32* places = args.places[args.from];
  K* keys_to = (K*)args.keys[1 - args.from];
  U32* places_to = args.places[1 - args.from];
  const I64 stretch = args.chunk / kWarps;
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 chunk = item - line * args.chunks;
    const I64 end = (chunk + 1) * args.chunk < args.n ? (chunk + 1) * args.chunk : args.n;
    const I64 begin = chunk * args.chunk + warp * stretch;
    for (int w = 0; w < kWarps; ++w) before[w][threadIdx.x] = 0;
    __syncthreads();
    for (I64 i = begin + lane; i < begin + stretch + lane; i += 32) {
      const bool valid = i < end;
      const int digit = valid ? digitOf<K>(args, line * args.n + i) : kDigits;
      const U32 peers = __match_any_sync(0xffffffffu, digit);
      if (valid && (peers & ((1u << lane) - 1u)) == 0) before[warp][digit] += __popc(peers);
      __syncwarp();
    }
    __syncthreads();
    {
      const I64 at = (I64)threadIdx.x * args.chunks + chunk;
      const I64* counts = args.counts + line * kDigits * args.chunks;
      base[threadIdx.x] = at > 0 ? counts[at - 1] : 0;
      U32 sum = 0;
      for (int w = 0; w < kWarps; ++w) {
        const U32 own = before[w][threadIdx.x];
        before[w][threadIdx.x] = sum;
        sum += own;
      }
    }
    __syncthreads();
    for (I64 i = begin + lane; i < begin + stretch + lane; i += 32) {
      const bool valid = i < end;
      const int digit = valid ? digitOf<K>(args, line * args.n + i) : kDigits;
      const U32 peers = __match_any_sync(0xffffffffu, digit);
      const U32 lower = peers & ((1u << lane) - 1u);
      if (valid) {
        const I64 to = line * args.n + base[digit] + before[warp][digit] + __popc(lower);
        keys_to[to] = keys[line * args.n + i];
        places_to[to] = places[line * args.n + i];
      }
      __syncwarp();
      if (valid && lower == 0) before[warp][digit] += __popc(peers);
      __syncwarp();
    }
    __syncthreads();
  }
}

// --- what sorted lines are for -------------------------------------------------------------------

// starts[line][t] = how many keys of the line are below t, for t in 0 .. extent. Keys of 32 bits.
__device__ inline void findStarts(const Args& args) {
  const U32* keys = (const U32*)args.keys[args.from];
  for (I64 item = firstItem(); item < args.group * (args.extent + 1); item += itemStep()) {
    const I64 line = item / (args.extent + 1);
    const I64 target = item - line * (args.extent + 1);
    I64 low = 0;
    I64 high = args.n;
    while (low < high) {
      const I64 middle = (low + high) / 2;
      if (keys[line * args.n + middle] < (U32)target) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    args.starts[item] = (U32)low;
  }
}

// One element of the result: its sources are neighbours now, in their own order.
template <class V>
__device__ void addSources(const Args& args, const U32* places, I64 first, I64 last, I64 out,
                           I64 value, I64 source) {
  V sum = loadAs(V(), args.in_type, args.in[0], value);
  for (I64 k = first; k < last; ++k) {
    sum += loadAs(V(), args.in_type, args.in[2], source + (I64)places[k] * args.axis_strides[3]);
  }
  storeAs(args.in_type, args.out, out, sum);
}

__device__ inline void combine(const Args& args) {
  const I64 count = args.group * args.extent * args.lanes.count;
  for (I64 item = firstItem(); item < count; item += itemStep()) {
    // The dimension along which the result is densest goes by first.
    const I64 inner = args.order == 0 ? args.lanes.count : args.order == 1 ? args.extent : args.group;
    const I64 middle = args.order == 0 ? args.extent : args.lanes.count;
    const I64 a = item % inner;
    const I64 b = item / inner % middle;
    const I64 c = item / inner / middle;
    const I64 lane = args.order == 0 ? a : b;
    const I64 target = args.order == 0 ? b : args.order == 1 ? a : c;
    const I64 line = args.order == 2 ? a : c;
    I64 at[3];  // out, value, source
    for (int k = 0; k < 3; ++k) {
      const int operand = k == 2 ? 3 : k;
      at[k] = offsetOf(args.lines, operand, args.first_line + line) +
              offsetOf(args.lanes, operand, lane);
      if (k < 2) at[k] += target * args.axis_strides[k];
    }
    const U32* starts = args.starts + line * (args.extent + 1) + target;
    const U32* places = args.places[args.from] + line * args.n;
    const I64 first = starts[0];
    const I64 last = starts[1];
    if (args.add == 0) {
      if (last > first) {
        copyElement(args.in_type, args.out, at[0], args.in[2],
                    at[2] + (I64)places[last - 1] * args.axis_strides[3]);
      } else {
        copyElement(args.in_type, args.out, at[0], args.in[0], at[1]);
      }
    } else if (isFloatType(args.in_type)) {
      addSources<double>(args, places, first, last, at[0], at[1], at[2]);
    } else {
      addSources<U64>(args, places, first, last, at[0], at[1], at[2]);
    }
  }
}

// The first `extent` of each line; what follows is -1.
__device__ inline void putPlaces(const Args& args) {
  for (I64 item = firstItem(); item < args.group * args.n; item += itemStep()) {
    const I64 line = item / args.n;
    const I64 i = item - line * args.n;
    const I64 to = offsetOf(args.lines, 0, args.first_line + line) + i * args.axis_strides[0];
    ((I64*)args.out)[to] = i < args.extent ? (I64)args.places[args.from][item] : -1;
  }
}

}  // namespace hdl

#define HDL_KERNEL(name) extern "C" __global__ void name(const __grid_constant__ hdl::Args args)

HDL_KERNEL(hdlScan) {
  if (hdl::isFloatType(args.in_type)) {
    hdl::scanChunks<double>(args);
  } else {
    hdl::scanChunks<hdl::U64>(args);
  }
}
HDL_KERNEL(hdlTotals) {
  if (hdl::isFloatType(args.in_type)) {
    hdl::addChunks<double>(args);
  } else {
    hdl::addChunks<hdl::U64>(args);
  }
}
HDL_KERNEL(hdlScanColumns) {
  if (hdl::isFloatType(args.in_type)) {
    hdl::scanColumns<double>(args);
  } else {
    hdl::scanColumns<hdl::U64>(args);
  }
}
HDL_KERNEL(hdlKeys32) { hdl::makeKeys<hdl::U32>(args); }
HDL_KERNEL(hdlKeys64) { hdl::makeKeys<hdl::U64>(args); }
HDL_KERNEL(hdlSortShort32) { hdl::sortShort<hdl::U32>(args); }
HDL_KERNEL(hdlSortShort64) { hdl::sortShort<hdl::U64>(args); }
HDL_KERNEL(hdlCount32) { hdl::countDigits<hdl::U32>(args); }
HDL_KERNEL(hdlCount64) { hdl::countDigits<hdl::U64>(args); }
HDL_KERNEL(hdlMove32) { hdl::moveByDigit<hdl::U32>(args); }
HDL_KERNEL(hdlMove64) { hdl::moveByDigit<hdl::U64>(args); }
HDL_KERNEL(hdlStarts) { hdl::findStarts(args); }
HDL_KERNEL(hdlCombine) { hdl::combine(args); }
HDL_KERNEL(hdlPlaces) { hdl::putPlaces(args); }
