// CUDA kernels of the library functions that heddle implements itself: cumsum, argsort, scatter and
// scatter_add. These functions work on *lines*: the elements along one axis of a tensor
// (cuda_lines.h). In a kernel source, this text follows cuda_select.h.
// host/device/cuda_library_launches.h launches the kernels and documents their arguments. The
// kernels use atomics only to count integers. The results therefore do not depend on the order in
// which blocks or threads run.

namespace hdl {

constexpr int kItems = 4;  // number of neighbouring elements that a thread scans

// --- cumsum --------------------------------------------------------------------------------------

// Computes the running sums of one chunk of one line (cuda_lines.h). A chunk consists of
// `args.chunk` neighbouring elements of a line. If args.totals is set, totals[line][i] must be the
// sum of chunks 0 to i of the line. The thread that reads an element of the input also writes that
// element of the result, so the result may overwrite the input.
template <class V>
__device__ void scanChunk(const Args& args, I64 line, I64 chunk, V* shared) {
  const I64 in = offsetOf(args.lines, 1, line);
  const I64 out = offsetOf(args.lines, 0, line);
  const I64 begin = chunk * args.chunk;
  const I64 end = begin + args.chunk < args.n ? begin + args.chunk : args.n;
  V carry = 0;
  if (args.totals != 0 && chunk > 0)
    carry = ((const V*)args.totals)[line * args.chunks + chunk - 1];
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

// Sets totals[line][chunk] to the sum of the elements of the chunk.
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

// Computes the running sums of one line per thread. The host launches this kernel if there are many
// lines, and they are short or neighbours in memory.
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

// --- scatter and the result of argsort -----------------------------------------------------------

// Sets starts[line][t], for 0 <= t <= extent, to the number of keys of the line that are less than
// t. Requires that the keys are sorted and have 32 bits.
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

// Computes one element of a scatter_add: its old value plus its sources, the elements that the
// scatter adds to it. After the sort, the indices of these sources are `indices[first]` to
// `indices[last - 1]`, in ascending order. The function issues kAtOnce loads at a time.
template <class V>
__device__ __forceinline__ void addSources(const Args& args, I64 type, const U32* indices,
                                           I64 first, I64 last, I64 out, I64 value, I64 source) {
  constexpr int kAtOnce = 4;
  const I64 stride = args.axis_strides[3];
  V sum = loadAs(V(), type, args.in[0], value);
  I64 k = first;
  for (; k + kAtOnce <= last; k += kAtOnce) {
    V part[kAtOnce];
    HDL_UNROLL
    for (int j = 0; j < kAtOnce; ++j) {
      part[j] = loadAs(V(), type, args.in[2], source + (I64)indices[k + j] * stride);
    }
    HDL_UNROLL
    for (int j = 0; j < kAtOnce; ++j) sum += part[j];
  }
  for (; k < last; ++k) {
    sum += loadAs(V(), type, args.in[2], source + (I64)indices[k] * stride);
  }
  storeAs(type, args.out, out, sum);
}

// Computes the result of a scatter or scatter_add from the sorted elements of the index tensor.
__device__ inline void combine(const Args& args) {
  const I64 count = args.group * args.extent * args.lanes.count;
  for (I64 item = firstItem(); item < count; item += itemStep()) {
    // `item` numbers the combinations of a lane (an index along the axes in Args::lanes), a target
    // (an index along the axis of the scatter) and a line of the group. Args::order says which of
    // the three varies fastest, so that neighbouring items access neighbouring elements in memory.
    const I64 inner = args.order == 0   ? args.lanes.count
                      : args.order == 1 ? args.extent
                                        : args.group;
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
    const U32* indices = args.indices[args.from] + line * args.n;
    const I64 first = starts[0];
    const I64 last = starts[1];
    if (args.add == 0) {
      if (last > first) {
        copyElement(args.in_type, args.out, at[0], args.in[2],
                    at[2] + (I64)indices[last - 1] * args.axis_strides[3]);
      } else {
        copyElement(args.in_type, args.out, at[0], args.in[0], at[1]);
      }
    } else if (args.in_type == kF32) {  // the type is a constant, so loads have no branch
      addSources<double>(args, kF32, indices, first, last, at[0], at[1], at[2]);
    } else if (args.in_type == kBF16) {
      addSources<double>(args, kBF16, indices, first, last, at[0], at[1], at[2]);
    } else if (isFloatType(args.in_type)) {
      addSources<double>(args, args.in_type, indices, first, last, at[0], at[1], at[2]);
    } else {
      addSources<U64>(args, args.in_type, indices, first, last, at[0], at[1], at[2]);
    }
  }
}

// Writes the first `extent` indices of each sorted line to the result of argsort.
__device__ inline void putIndices(const Args& args) {
  for (I64 item = firstItem(); item < args.group * args.extent; item += itemStep()) {
    const I64 line = item / args.extent;
    const I64 i = item - line * args.extent;
    const I64 to = offsetOf(args.lines, 0, args.first_line + line) + i * args.axis_strides[0];
    ((I64*)args.out)[to] = (I64)args.indices[args.from][line * args.n + i];
  }
}

}  // namespace hdl

// The host compiles the kernels in three parts, each at its first use. HDL_PART selects the part.
// 1: kernels for keys of 32 bits. 2: kernels for keys of 64 bits. 0: all other kernels.
#ifdef HDL_PART
#define HDL_HAS(part) (HDL_PART == part)
#else
#define HDL_HAS(part) 1
#endif
#define HDL_KERNEL(name)                                         \
  extern "C" __global__ void __launch_bounds__(hdl::kThreads, 2) \
      name(const __grid_constant__ hdl::Args args)

#if HDL_HAS(0)
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
HDL_KERNEL(hdlStarts) { hdl::findStarts(args); }
HDL_KERNEL(hdlCombine) { hdl::combine(args); }
HDL_KERNEL(hdlIndices) { hdl::putIndices(args); }
#endif
#if HDL_HAS(1)
HDL_KERNEL(hdlKeys32) { hdl::makeKeys<hdl::U32>(args); }
HDL_KERNEL(hdlSortWarp32) { hdl::sortWarps<hdl::U32>(args); }
HDL_KERNEL(hdlSortTile32) { hdl::sortTiles<hdl::U32>(args); }
HDL_KERNEL(hdlSelect32) { hdl::selectTiles<hdl::U32>(args); }
HDL_KERNEL(hdlCount32) { hdl::countDigits<hdl::U32>(args); }
HDL_KERNEL(hdlMove32) { hdl::moveByDigit<hdl::U32>(args); }
#endif
#if HDL_HAS(2)
HDL_KERNEL(hdlKeys64) { hdl::makeKeys<hdl::U64>(args); }
HDL_KERNEL(hdlSortWarp64) { hdl::sortWarps<hdl::U64>(args); }
HDL_KERNEL(hdlSortTile64) { hdl::sortTiles<hdl::U64>(args); }
HDL_KERNEL(hdlSelect64) { hdl::selectTiles<hdl::U64>(args); }
HDL_KERNEL(hdlCount64) { hdl::countDigits<hdl::U64>(args); }
HDL_KERNEL(hdlMove64) { hdl::moveByDigit<hdl::U64>(args); }
#endif
