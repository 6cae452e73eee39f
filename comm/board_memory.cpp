#include "comm/board_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <sstream>

#include "comm/process_info.h"
#include "ir/error.h"

namespace heddle::comm {
namespace {

std::vector<int> ranksLike(const BoardPlaces& places, int rank, bool same_process) {
  const BoardPlaces::Place& mine = places.ranks[static_cast<size_t>(rank)];
  std::vector<int> found;
  for (size_t i = 0; i < places.ranks.size(); ++i) {
    const BoardPlaces::Place& other = places.ranks[i];
    if (other.host_key != mine.host_key || (same_process && other.pid != mine.pid)) continue;
    found.push_back(static_cast<int>(i));
  }
  return found;
}

// In memory where there is a file system for it.
std::string folderForFiles() {
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

bool hasCounts(int size) { return size <= BoardCounts::kMostRanks; }

size_t slotBytes(int size) { return static_cast<size_t>(size) * sizeof(BoardSlot); }

size_t bytesOf(int size) {
  const auto ranks = static_cast<size_t>(size);
  return slotBytes(size) + (hasCounts(size) ? ranks * sizeof(BoardCounts) : 0);
}

BoardCounts* countsIn(void* memory, int size) {
  if (!hasCounts(size)) return nullptr;
  return reinterpret_cast<BoardCounts*>(static_cast<std::byte*>(memory) + slotBytes(size));
}

constexpr std::align_val_t kAlignment{alignof(BoardSlot)};

// Fresh memory of bytesOf(size).
void makeEmpty(void* memory, int size) {
  for (int rank = 0; rank < size; ++rank) {
    new (static_cast<BoardSlot*>(memory) + rank) BoardSlot;
    if (hasCounts(size)) new (countsIn(memory, size) + rank) BoardCounts;
  }
}

}  // namespace

std::vector<int> BoardPlaces::onHostOf(int rank) const { return ranksLike(*this, rank, false); }
std::vector<int> BoardPlaces::inProcessOf(int rank) const { return ranksLike(*this, rank, true); }

std::vector<int> BoardPlaces::leaders() const {
  std::vector<int> found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (onHostOf(rank).front() == rank) found.push_back(rank);
  }
  return found;
}

BoardPlaces findPlaces(World& world, const std::string& host_key) {
  const int pid = static_cast<int>(getpid());
  const std::string mine = fmt::format("{}\n{}\n{} {}", host_key.empty() ? hostKey() : host_key,
                                       hostName(), pid, processState(pid).started);
  BoardPlaces places;
  for (const std::string& text : world.exchange(mine)) {
    BoardPlaces::Place& place = places.ranks.emplace_back();
    std::istringstream in(text);
    std::getline(in, place.host_key);
    std::getline(in, place.host);
    in >> place.pid >> place.started;
  }
  return places;
}

// The name under which the others find the memory; it goes with this object.
class BoardMemory::File {
 public:
  File() {
    folder_ = folderForFiles() + "/heddle-board-XXXXXX";
    HEDDLE_USER_CHECK(mkdtemp(folder_.data()) != nullptr, "the control board: mkdtemp {}: {}",
                      folder_, std::strerror(errno));
  }
  ~File() {
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return folder_ + "/slots"; }

 private:
  std::string folder_;
};

BoardMemory::BoardMemory(int size, void* memory, size_t mapped_bytes)
    : size_(size),
      slots_(static_cast<BoardSlot*>(memory)),
      counts_(countsIn(memory, size)),
      mapped_bytes_(mapped_bytes) {}

BoardMemory::~BoardMemory() {
  if (mapped_bytes_ > 0) {
    munmap(slots_, mapped_bytes_);
  } else {
    operator delete(slots_, kAlignment);
  }
}

std::shared_ptr<BoardMemory> BoardMemory::makePlain(int size) {
  void* memory = operator new(bytesOf(size), kAlignment);
  makeEmpty(memory, size);
  return std::shared_ptr<BoardMemory>(new BoardMemory(size, memory, 0));
}

std::shared_ptr<BoardMemory> BoardMemory::map(int size, const std::string& path, bool fresh) {
  const size_t bytes = bytesOf(size);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0), 0600);
  HEDDLE_USER_CHECK(file >= 0, "the control board: open {}: {}", path, std::strerror(errno));
  // All of it now: a page that cannot be had later would be a signal, not an error.
  const int refused = fresh ? posix_fallocate(file, 0, static_cast<off_t>(bytes)) : 0;
  void* memory =
      refused != 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const std::string why = std::strerror(refused != 0 ? refused : errno);
  close(file);
  HEDDLE_USER_CHECK(memory != MAP_FAILED, "the control board: {} bytes in {}: {}", bytes, path,
                    why);
  if (fresh) makeEmpty(memory, size);
  return std::shared_ptr<BoardMemory>(new BoardMemory(size, memory, bytes));
}

// The first rank of a host makes the memory and says where it is, the others take it, and when all
// have it the name goes. What fails is told to all, so that none goes on alone.
std::shared_ptr<BoardMemory> BoardMemory::share(World& world, const BoardPlaces& places) {
  const int rank = world.rank();
  const std::vector<int> here = places.onHostOf(rank);
  const bool one_process = places.inProcessOf(rank) == here;
  const bool makes = here.front() == rank;
  std::shared_ptr<BoardMemory> memory;
  // For the other threads of the process. Kept when the job ends meanwhile: one may be reading it.
  std::shared_ptr<BoardMemory>* handle = nullptr;
  std::optional<File> file;
  std::string where, fault;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const UserError& error) {
      fault = error.what();
    }
  };
  if (makes) {
    attempt([&] {
      if (!one_process) file.emplace();
      memory = one_process ? makePlain(world.size()) : map(world.size(), file->path(), true);
      if (one_process) handle = new std::shared_ptr<BoardMemory>(memory);
      where = one_process ? std::to_string(reinterpret_cast<uintptr_t>(handle)) : file->path();
    });
  }
  const std::string answer = world.exchange(where)[static_cast<size_t>(here.front())];
  if (!makes && !answer.empty()) {
    attempt([&] {
      memory = one_process ? *reinterpret_cast<std::shared_ptr<BoardMemory>*>(std::stoull(answer))
                           : map(world.size(), answer, false);
    });
  }
  const std::vector<std::string> faults = world.exchange(fault);
  delete handle;
  for (const std::string& one : faults) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return memory;
}

}  // namespace heddle::comm
