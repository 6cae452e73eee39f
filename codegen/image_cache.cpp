#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include "codegen/kernel.h"
#include "codegen/process.h"
#include "codegen/runtime_text.h"
#include "ir/error.h"

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;

// FNV-1a with two seeds and a final mix. The name of a file only has to be unlikely to collide: the
// whole key is in the file and compared.
uint64_t hash64(const std::string& text, uint64_t seed) {
  uint64_t h = 14695981039346656037ull ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

std::string keyOf(const KernelSource& source, const KernelCompiler& compiler) {
  bool cuda = source.target == Target::Cuda;
  return fmt::format("heddle image 1\n{}\n{}\n{}\n{}", cuda ? "cuda" : "cpp", compiler.identity(),
                     runtimeHeader(source.target), source.text);
}

std::string stemOf(const std::string& key) {
  return fmt::format("{:016x}{:016x}", hash64(key, 0), hash64(key, 0x9e3779b97f4a7c15ull));
}

// A Cpp image has to be a file of its own for dlopen, so an entry is two files: STEM.image (or
// STEM.so) with the image, and STEM.key with the key and the checksum of the image, written last.
std::string imageName(const std::string& stem, Target target) {
  return stem + (target == Target::Cpp ? ".so" : ".cubin");
}

std::optional<std::string> readFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return text;
}

std::string checksumLine(const std::string& image) {
  return fmt::format("{} {:016x}\n", image.size(), hash64(image, 1));
}

// Writes under a name of this process and renames: readers see the old file, the new one or none.
bool writeAtomically(const fs::path& path, const std::string& bytes) {
  static std::atomic<int> counter{0};
  fs::path temporary = path;
  temporary += fmt::format(".{}.{}.tmp", getpid(), counter.fetch_add(1));
  {
    std::ofstream file(temporary, std::ios::binary);
    file << bytes;
    file.close();
    if (file.fail()) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      return false;
    }
  }
  std::error_code error;
  fs::permissions(temporary, fs::perms::owner_all, error);
  fs::rename(temporary, path, error);
  if (!error) return true;
  fs::remove(temporary, error);
  return false;
}

std::vector<std::byte> toBytes(const std::string& text) {
  const std::byte* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace

struct ImageCache::Impl {
  using Image = std::shared_ptr<const KernelImage>;

  fs::path folder;
  int64_t max_bytes = 0;
  std::atomic<int64_t> compiled{0};

  std::mutex mutex;
  std::condition_variable finished;
  std::map<std::string, Image> images;  // key -> image; null while some thread makes it
  bool complained = false;
  std::optional<TempFolder> own_folder;  // where shared objects go when `folder` takes none

  Image load(const std::string& key, const std::string& stem, Target target) {
    std::optional<std::string> note = readFile(folder / (stem + ".key"));
    fs::path path = folder / imageName(stem, target);
    std::optional<std::string> bytes = readFile(path);
    if (!note || !bytes || *note != checksumLine(*bytes) + key) return nullptr;
    // The age of the key file is when the entry was last wanted; eviction goes by it.
    std::error_code ignored;
    fs::last_write_time(folder / (stem + ".key"), fs::file_time_type::clock::now(), ignored);
    auto image = std::make_shared<KernelImage>();
    image->bytes = toBytes(*bytes);
    if (target == Target::Cpp) image->path = path.string();
    return image;
  }

  void complain(const std::string& what) {
    std::lock_guard lock(mutex);
    if (complained) return;
    complained = true;
    fmt::print(stderr,
               "heddle: the kernel cache {} takes no files ({}); kernels are compiled "
               "again in each process\n",
               folder.string(), what);
  }

  bool save(const std::string& key, const std::string& stem, Target target,
            const std::string& image) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      fs::create_directories(folder, error);
      if (!error) fs::permissions(folder, fs::perms::owner_all, error);
    }
    if (error) {
      complain(error.message());
      return false;
    }
    // Without its key an image is never read, so a crash between the two writes costs a compile.
    if (!writeAtomically(folder / imageName(stem, target), image) ||
        !writeAtomically(folder / (stem + ".key"), checksumLine(image) + key)) {
      complain(std::strerror(errno));
      return false;
    }
    evict(stem);
    return true;
  }

  // Removes the least recently wanted entries until the folder fits. An open or mapped image stays
  // usable after its name is gone.
  void evict(const std::string& keep) {
    struct Entry {
      fs::file_time_type age;
      std::string stem;
      int64_t bytes = 0;
    };
    std::map<std::string, Entry> entries;
    std::error_code error;
    for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
      std::string extension = file.path().extension().string();
      // What a killed process left half written.
      if (extension == ".tmp" &&
          file.last_write_time(error) < fs::file_time_type::clock::now() - std::chrono::hours(1)) {
        fs::remove(file.path(), error);
      }
      if (extension != ".key" && extension != ".so" && extension != ".cubin") continue;
      Entry& entry = entries[file.path().stem().string()];
      entry.stem = file.path().stem().string();
      uintmax_t size = file.file_size(error);
      if (!error) entry.bytes += static_cast<int64_t>(size);
      fs::file_time_type time = file.last_write_time(error);
      if (!error) entry.age = std::max(entry.age, time);
    }
    int64_t total = 0;
    std::vector<Entry> by_age;
    for (auto& [stem, entry] : entries) {
      total += entry.bytes;
      if (stem != keep) by_age.push_back(entry);
    }
    std::sort(by_age.begin(), by_age.end(),
              [](const Entry& a, const Entry& b) { return a.age < b.age; });
    for (const Entry& entry : by_age) {
      if (total <= max_bytes) break;
      for (const char* extension : {".key", ".so", ".cubin"}) {
        fs::remove(folder / (entry.stem + extension), error);
      }
      total -= entry.bytes;
    }
  }

  Image make(const std::string& key, const KernelSource& source, const KernelCompiler& compiler) {
    std::string stem = stemOf(key);
    if (Image found = load(key, stem, source.target)) return found;
    auto image = std::make_shared<KernelImage>();
    image->bytes = compiler.compile(source);
    compiled.fetch_add(1);
    std::string bytes(reinterpret_cast<const char*>(image->bytes.data()), image->bytes.size());
    bool saved = save(key, stem, source.target, bytes);
    if (source.target == Target::Cpp) {
      image->path = saved ? (folder / imageName(stem, source.target)).string() : keep(stem, bytes);
    }
    return image;
  }

  // A shared object must be somewhere: in a folder of our own, gone with this object.
  std::string keep(const std::string& stem, const std::string& bytes) {
    std::lock_guard lock(mutex);
    if (!own_folder) own_folder.emplace();
    std::string path = own_folder->path() + "/" + stem + ".so";
    HEDDLE_USER_CHECK(writeAtomically(path, bytes), "cannot write a kernel to {}", path);
    return path;
  }
};

ImageCache::ImageCache(std::string folder, int64_t max_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->folder = std::move(folder);
  impl_->max_bytes = max_bytes;
}

ImageCache::~ImageCache() = default;

int64_t ImageCache::compiled() const { return impl_->compiled.load(); }

std::shared_ptr<const KernelImage> ImageCache::get(const KernelSource& source,
                                                   const KernelCompiler& compiler) {
  HEDDLE_CHECK(source.target == compiler.target(),
               "a kernel source and a compiler of another kind");
  std::string key = keyOf(source, compiler);
  std::unique_lock lock(impl_->mutex);
  for (;;) {
    auto [entry, fresh] = impl_->images.emplace(key, nullptr);
    if (fresh) break;
    if (entry->second) return entry->second;
    impl_->finished.wait(lock);
  }
  lock.unlock();
  try {
    Impl::Image image = impl_->make(key, source, compiler);
    lock.lock();
    impl_->images[key] = image;
    impl_->finished.notify_all();
    return image;
  } catch (...) {
    // Those who wait try for themselves and meet the same error.
    if (!lock.owns_lock()) lock.lock();
    impl_->images.erase(key);
    impl_->finished.notify_all();
    throw;
  }
}

std::string ImageCache::defaultFolder() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string own = variable("HEDDLE_CACHE_DIR"); !own.empty()) return own;
  if (std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/heddle";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/heddle";
  return (fs::temp_directory_path() / fmt::format("heddle-cache-{}", getuid())).string();
}

}  // namespace heddle::codegen
