// The host version of codegen/runtime/cuda_device.h. Tests compile generated CUDA kernels with this
// text, and run them as fibers (tests/codegen/simt/grid.h). It adds two checks to shared memory:
// - A read of memory that no thread of the block has written is an error.
// - An access is an error if another thread accesses the same memory without a barrier in between,
//   and at least one of the two accesses is a write.
#include <math.h>
#include <string.h>

#define __device__
#define __global__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static

// Functions that the test provides to the compiled kernels. The test sets `simt_host` before it
// runs a kernel.
struct SimtHost {
  int (*thread)();
  int (*threads)();
  long long (*block)();
  long long (*blocks)();
  int (*row)();
  int (*rows)();
  unsigned long long (*serial)();  // differs for each block of each run
  int (*shared_bytes)();           // dynamic shared memory of the launch
  int (*cluster_blocks)();         // number of blocks of a cluster
  long long (*barriers)();         // the number of barriers that this thread has passed
  void (*barrier)(int number);
  void (*await)(int number, const unsigned long long* slot, int words);
  void (*cluster)(int number);  // waits until all threads of the cluster have called it
  void (*own)(void* memory, unsigned long long bytes);  // a block uses this shared memory
  unsigned long long (*exchange)(unsigned long long value, int from);
  void (*fault)(const char* text);
  double (*erfinv)(double x);
};
extern "C" {
const SimtHost* simt_host;
}

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

template <class To, class From>
inline To simtBits(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __int_as_float(int x) { return simtBits<float>(x); }
inline float __uint_as_float(unsigned x) { return simtBits<float>(x); }
inline int __float_as_int(float x) { return simtBits<int>(x); }
inline unsigned __float_as_uint(float x) { return simtBits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return simtBits<double>(x); }
inline long long __double_as_longlong(double x) { return simtBits<long long>(x); }
// Conversions round towards zero and saturate.
inline long long simtToInteger(double x, long long lowest, long long highest) {
  if (x <= (double)lowest) return lowest;
  return x >= (double)highest ? highest : (long long)x;
}
inline int __double2int_rz(double x) { return (int)simtToInteger(x, -2147483647 - 1, 2147483647); }
inline int __float2int_rz(float x) { return __double2int_rz(x); }
inline long long __double2ll_rz(double x) {
  return simtToInteger(x, -9223372036854775807ll - 1, 9223372036854775807ll);
}
inline long long __float2ll_rz(float x) { return __double2ll_rz(x); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31));
}
template <class T>
inline T __ldg(const T* from) {
  return *from;
}
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return (float)rsqrt((double)x); }
inline double erfinv(double x) { return simt_host->erfinv(x); }
inline float erfinvf(float x) { return (float)simt_host->erfinv(x); }

namespace hd {

inline float nearQuotient(float x, float y) { return x / y; }
inline float nearDivision(float x, float y) { return x / y; }
inline float roundBf16(float x) {
  if (x != x) return __uint_as_float(0x7fff0000u);
  const unsigned bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
inline unsigned short f16Bits(float x) { return simtBits<unsigned short>((_Float16)x); }
inline float f16Value(unsigned short bits) { return (float)simtBits<_Float16>(bits); }
inline unsigned bf16Pair(float low, float high) {
  return __float_as_uint(roundBf16(low)) >> 16 | __float_as_uint(roundBf16(high));
}
inline unsigned f16Pair(float low, float high) {
  return f16Bits(low) | (unsigned)f16Bits(high) << 16;
}

inline float maxOrNan(float a, float b) { return (a > b) | (a != a) ? a : b; }
inline float minOrNan(float a, float b) { return (a < b) | (a != a) ? a : b; }
inline float multiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
inline unsigned product(unsigned a, unsigned b, unsigned& high) {
  const unsigned long long p = (unsigned long long)a * b;
  high = (unsigned)(p >> 32);
  return (unsigned)p;
}
inline float nearReciprocal(float x) { return fabsf(1 / x) < 0x1p-126f ? copysignf(0, x) : 1 / x; }
inline float nearPowerOfTwo(float x) { return x < -126 ? 0 : exp2f(x); }
inline float sinOfLarge(float x) { return sinf(x); }
inline float cosOfLarge(float x) { return cosf(x); }

inline int thread() { return simt_host->thread(); }
inline int threads() { return simt_host->threads(); }
inline long long block() { return simt_host->block(); }
inline long long blocks() { return simt_host->blocks(); }
inline int blockRow() { return simt_host->row(); }
inline int blockRows() { return simt_host->rows(); }
// The test runs one launch after another.
inline void awaitEarlierWork() {}
// Each barrier() in the source has a number, so that a test can make all threads skip this barrier.
inline void barrierNumber(int number) { simt_host->barrier(number); }
#define barrier() barrierNumber(__COUNTER__)

template <bool kStreams, class Word>
inline Word loadWord(const Word* from) {
  return *from;
}
template <bool kStreams, class Word>
inline void storeWord(Word* to, Word word) {
  *to = word;
}
inline unsigned takeTicket(unsigned* tickets) { return (*tickets)++; }
inline bool arriveLast(unsigned* arrivals, unsigned wanted) {
  const bool is_last = ++*arrivals == wanted;
  if (is_last) *arrivals = 0;
  return is_last;
}
constexpr unsigned long long kPublished = 1ull << 32;
template <class State>
inline void publish(unsigned long long* slot, const State& state) {
  unsigned words[(sizeof(State) + 3) / 4] = {};
  memcpy(words, &state, sizeof(state));
  for (unsigned word : words) *slot++ = kPublished | word;
}
#define awaitState(slot, state) awaitStateNumber(__COUNTER__, slot, state)
template <class State>
inline void awaitStateNumber(int number, const unsigned long long* slot, State& state) {
  unsigned words[(sizeof(State) + 3) / 4];
  simt_host->await(number, slot, (int)(sizeof(words) / 4));
  for (unsigned& word : words) word = (unsigned)*slot++;
  memcpy(&state, words, sizeof(state));
}

template <class T>
inline T fromPartner(T x, int mask) {
  unsigned long long word = 0;
  memcpy(&word, &x, sizeof(x));
  word = simt_host->exchange(word, thread() ^ mask);
  memcpy(&x, &word, sizeof(x));
  return x;
}

// Observes the accesses to two bytes of shared memory.
struct SharedUnit {
  long long written, read;  // barriers() at the last write and read; -1: never
  int writer, reader;       // the threads of these accesses; reader -2: several threads since
                            // barrier `read`

  void onRead() {
    const long long now = simt_host->barriers();
    const int me = thread();
    if (written < 0) simt_host->fault("a thread reads shared memory that no thread has written");
    if (written == now && writer != me) {
      simt_host->fault("a thread reads shared memory that another thread writes without a barrier");
    }
    reader = read != now ? me : reader == me ? me : -2;
    read = now;
  }
  void onWrite() {
    const long long now = simt_host->barriers();
    const int me = thread();
    if (written == now && writer != me) {
      simt_host->fault("two threads write shared memory without a barrier in between");
    }
    if (read == now && reader != me) {
      simt_host->fault("a thread writes shared memory that another thread reads without a barrier");
    }
    written = now;
    writer = me;
  }
};

template <int kBytes>
struct SharedBytes {
  alignas(16) unsigned char bytes[kBytes];
  SharedUnit units[(kBytes + 1) / 2];
  unsigned long long serial;
  // Resets the memory if another block used it last. All bytes become 0xFF.
  void begin() {
    if (serial == simt_host->serial()) return;
    serial = simt_host->serial();
    simt_host->own(this, sizeof(*this));
    memset(bytes, 0xff, sizeof(bytes));
    for (SharedUnit& unit : units) unit = {-1, -1, -1, -1};
  }
};

// The dynamic shared memory of a block.
inline SharedBytes<(116 << 10)> dynamicShared;

template <class T>
struct SharedElement {
  T* at;
  SharedUnit* unit;
  operator T() const {
    for (unsigned i = 0; i < sizeof(T) / 2; ++i) unit[i].onRead();
    return *at;
  }
  void operator=(const SharedElement& other) const { *this = (T)other; }
  void operator=(T value) const {
    for (unsigned i = 0; i < sizeof(T) / 2; ++i) unit[i].onWrite();
    *at = value;
  }
};

template <class T>
struct SharedArray {
  T* first;
  SharedUnit* units;
  int count;
  template <int kBytes>
  explicit SharedArray(SharedBytes<kBytes>& from)
      : first((T*)from.bytes), units(from.units), count(kBytes / (int)sizeof(T)) {
    static_assert(sizeof(T) % 2 == 0, "SharedUnit observes two bytes");
    from.begin();
  }
  explicit SharedArray(int offset) : SharedArray(dynamicShared) {
    first = (T*)(dynamicShared.bytes + offset);
    units += offset / 2;
    count = (simt_host->shared_bytes() - offset) / (int)sizeof(T);
  }
  SharedElement<T> operator[](int i) const {
    if (i < 0 || i >= count) {
      simt_host->fault("an index is outside of the shared memory");
      i = 0;
    }
    return {first + i, units + i * (int)(sizeof(T) / 2)};
  }
};

// The values that blocks have sent to other blocks of their cluster. A block receives them when it
// has passed the next barrier of the cluster.
struct SentValue {
  long long block;     // of the receiver
  long long barriers;  // barriers() of the sender
  void* at;
  SharedUnit* unit;
  int bytes;
  unsigned char value[32];
};
constexpr int kMostSent = 16384;
inline SentValue sentValues[kMostSent];
}  // namespace hd
extern "C" {
int simt_sent;
}
namespace hd {
// The hardware requires that each thread waits once for each arrival, and that all blocks have
// started before one of them stores in the shared memory of another.
struct ClusterStart {
  unsigned long long serial;  // of the block
  bool arrived, awaited;
};
inline ClusterStart clusterStarts[1024];
inline ClusterStart& clusterStart() {
  ClusterStart& mine = clusterStarts[thread()];
  if (mine.serial != simt_host->serial()) mine = {simt_host->serial(), false, false};
  return mine;
}
inline void arriveInCluster() {
  clusterStart();
  simt_host->own(clusterStarts, sizeof(clusterStarts));
  clusterStart().arrived = true;
}
inline void awaitCluster() {
  ClusterStart& mine = clusterStart();
  if (!mine.arrived || mine.awaited) {
    simt_host->fault("a thread waits for the start of the cluster without an arrival");
  }
  mine.awaited = true;
}
template <class Array, class T>
inline void sendToBlock(const Array& to, int at, const T& value, int rank) {
  const SharedElement<T> element = to[at];
  if (!clusterStart().awaited) {
    simt_host->fault("a thread stores in another block that may not have started");
  }
  if (simt_sent == kMostSent)
    return simt_host->fault("the blocks of a cluster send too many values");
  const long long first = block() / simt_host->cluster_blocks() * simt_host->cluster_blocks();
  SentValue& sent = sentValues[simt_sent++];
  static_assert(sizeof(T) <= sizeof(sent.value), "a state is too large");
  sent = {first + rank, simt_host->barriers(), element.at, element.unit, (int)sizeof(T), {}};
  memcpy(sent.value, &value, sizeof(T));
}
inline void clusterBarrierNumber(int number) {
  simt_host->cluster(number);
  int left = 0;
  for (int i = 0; i < simt_sent; ++i) {
    const SentValue& sent = sentValues[i];
    // A thread that has already passed this barrier may have sent values for the next one.
    if (sent.block != block() || sent.barriers >= simt_host->barriers()) {
      sentValues[left++] = sent;
      continue;
    }
    memcpy(sent.at, sent.value, (size_t)sent.bytes);
    for (int u = 0; u < sent.bytes / 2; ++u) sent.unit[u] = {simt_host->barriers() - 1, -1, -1, -1};
  }
  simt_sent = left;
}
#define clusterBarrier() clusterBarrierNumber(__COUNTER__)

// The copies that a thread has begun. They change the shared memory only when the thread waits for
// them, so that a missing wait gives wrong results.
struct PendingCopies {
  static constexpr int kMost = 1024;
  void* to[kMost];
  const void* from[kMost];
  int bytes[kMost];
  int count;
};
inline PendingCopies pendingCopies[1024];

template <class T>
inline void copyLater(const SharedArray<T>& to, int at, const void* from) {
  PendingCopies& mine = pendingCopies[thread()];
  if (mine.count == PendingCopies::kMost)
    return simt_host->fault("a thread begins too many copies");
  const SharedElement<T> element = to[at];
  T wrong;
  memset((void*)&wrong, 0xff, sizeof(T));
  element = wrong;
  mine.to[mine.count] = element.at;
  mine.from[mine.count] = from;
  mine.bytes[mine.count++] = (int)sizeof(T);
}
inline void awaitCopies() {
  PendingCopies& mine = pendingCopies[thread()];
  for (int i = 0; i < mine.count; ++i) memcpy(mine.to[i], mine.from[i], (size_t)mine.bytes[i]);
  mine.count = 0;
}

}  // namespace hd
