#include "codegen/compile/image_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/compile/image_bytes.h"
#include "codegen/compile/image_files.h"
#include "codegen/compile/load_image.h"
#include "ir/base/check.h"
#include "ir/system/usable_cpus.h"

namespace heddle::codegen {
namespace {

using Image = std::shared_ptr<const KernelImage>;

// Returns the number of compilers to run at the same time. Each run of a compiler uses one core.
size_t coresToUse() { return static_cast<size_t>(usableCpus()); }

// Runs work(i) for every i below `count`, on this thread and up to coresToUse() - 1 others. `work`
// must not throw.
template <class Work>
void forEachOnThreads(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  const auto serve = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  try {
    for (size_t i = 1; i < std::min(count, coresToUse()); ++i) helpers.emplace_back(serve);
  } catch (const std::exception&) {
    // There is no memory or no thread left. The threads that have started do the work.
  }
  serve();
  for (std::thread& helper : helpers) helper.join();
}

// One source that a caller of get() requested, and its result.
struct Wanted {
  const KernelSource* source;
  ImageKey key;
  Image image;
  std::exception_ptr error;
  bool mine = false;      // the current call of get() has claimed the image (claim())
  bool compiled = false;  // the current call of get() has compiled the image
};

using Group = std::vector<Wanted*>;

// Divides the sources into groups. One run of the compiler compiles one group.
std::vector<Group> groupsOf(const Group& wanted, const KernelCompiler& compiler) {
  const size_t most = compiler.mostAtOnce();
  const size_t fewest = (wanted.size() + most - 1) / most;
  // If cores would otherwise be idle, there are more groups than `fewest`. A group must not be too
  // small, because each run of the compiler has a fixed cost.
  const size_t least = std::max<size_t>(1, most / 3);
  const size_t count = std::max(fewest, std::min(coresToUse(), wanted.size() / least));
  std::vector<Group> groups(count);
  for (size_t i = 0; i < wanted.size(); ++i) groups[i * count / wanted.size()].push_back(wanted[i]);
  return groups;
}

// Creates the image from the bytes that the compiler has returned, so that the cache never stores
// an image that cannot be used.
Image loadCompiled(const KernelSource& source, std::string_view bytes) {
  try {
    return loadImage(source.target, source.entries, bytes);
  } catch (const UserError& error) {
    throw withText(error, fmt::format("the compiler reported success, but {}", error.what()));
  }
}

}  // namespace

struct ImageCache::Impl {
  Impl(std::string folder, int64_t max_bytes, int64_t memory_bytes)
      : files(std::move(folder), max_bytes), most_bytes(memory_bytes) {}

  ImageFiles files;
  std::atomic<int64_t> compiled{0};
  std::mutex mutex;
  std::condition_variable finished;
  struct Held {
    Image image;  // nullptr: a thread compiles or loads it
    int64_t last_use = 0;
  };
  std::map<std::string, Held> images;  // by key text
  ImageBytes bytes;                    // total size of `images` and their keys
  int64_t most_bytes;                  // the limit of `bytes`
  int64_t uses = 0;

  // Takes the images that are in memory. Claims all missing images that no other thread has
  // claimed: this thread must compile or load them. If all missing images are claimed by other
  // threads, waits for these threads. Returns true if this call has claimed images, and false if no
  // image is missing.
  bool claim(std::vector<Wanted>& wanted) {
    std::unique_lock lock(mutex);
    for (;;) {
      bool mine = false;
      bool others = false;
      for (Wanted& w : wanted) {
        if (w.image) continue;
        auto [entry, fresh] = images.try_emplace(w.key.text);
        w.image = entry->second.image;
        entry->second.last_use = ++uses;
        w.mine = fresh;
        mine = mine || fresh;
        others = others || (!fresh && !w.image);
      }
      if (mine) return true;
      if (!others) return false;
      finished.wait(lock);
    }
  }

  // Publishes the claimed images. If a source did not compile, or if there is no memory left, drops
  // the claim instead. Another thread that waits for this image then compiles the source itself.
  void publish(std::vector<Wanted>& wanted) {
    std::lock_guard lock(mutex);
    for (Wanted& w : wanted) {
      if (!w.mine) continue;
      w.mine = false;
      if (!w.image || !hold(w)) images.erase(w.key.text);
    }
    finished.notify_all();
    try {
      dropOldest();
    } catch (const std::bad_alloc&) {  // the images stay in memory
    }
  }

  // Stores the image of a claimed source in `images`. Returns false if there is no memory left.
  bool hold(const Wanted& w) noexcept {
    try {
      bytes.add(w.image, w.key.text);
    } catch (const std::bad_alloc&) {
      return false;
    }
    images.find(w.key.text)->second.image = w.image;
    return true;
  }

  // Drops the least recently used images until the rest fits. Keeps images that callers hold,
  // because dropping them would free no memory. Several sources may share an image: it is dropped
  // for all of them together, because its memory is freed only then.
  void dropOldest() {
    if (bytes.total() <= most_bytes) return;
    struct Unused {
      int64_t last_use = 0;  // of the source that used the image last
      std::vector<const std::string*> texts;
    };
    std::map<const KernelImage*, Unused> unused;
    for (const auto& [text, held] : images) {
      if (!held.image || held.image.use_count() > bytes.users(held.image)) continue;
      Unused& found = unused[held.image.get()];
      found.last_use = std::max(found.last_use, held.last_use);
      found.texts.push_back(&text);
    }
    std::vector<Unused> oldest_first;
    for (auto& [image, each] : unused) oldest_first.push_back(std::move(each));
    std::ranges::sort(oldest_first, {}, &Unused::last_use);
    for (const Unused& each : oldest_first) {
      if (bytes.total() <= most_bytes) return;
      for (const std::string* text : each.texts) {
        const auto found = images.find(*text);
        bytes.remove(found->second.image, found->first);
        images.erase(found);
      }
    }
  }

  void compileGroup(const Group& group, const KernelCompiler& compiler) {
    KernelSource joined = *group.front()->source;
    std::vector<const ImageKey*> keys{&group.front()->key};
    for (size_t i = 1; i < group.size(); ++i) {
      const KernelSource& source = *group[i]->source;
      joined.text += source.text;
      joined.entries.insert(joined.entries.end(), source.entries.begin(), source.entries.end());
      keys.push_back(&group[i]->key);
    }
    const std::vector<std::byte> compiled_bytes = compiler.compile(joined);
    const std::string_view bytes(reinterpret_cast<const char*>(compiled_bytes.data()),
                                 compiled_bytes.size());
    const Image image = loadCompiled(joined, bytes);
    files.save(keys, bytes);
    for (Wanted* w : group) {
      w->image = image;
      w->compiled = true;
    }
    compiled.fetch_add(static_cast<int64_t>(group.size()));
  }

  // Compiles a group. If this fails, compiles each source of the group alone, so that only the
  // sources with errors fail.
  void compileOrSplit(const Group& group, const KernelCompiler& compiler) noexcept {
    try {
      compileGroup(group, compiler);
    } catch (...) {
      if (group.size() == 1) {
        group.front()->error = std::current_exception();
        return;
      }
      for (Wanted* w : group) compileOrSplit({w}, compiler);
    }
  }

  // Loads the claimed images from the folder, and compiles the sources whose images are missing
  // there.
  void make(std::vector<Wanted>& wanted, const KernelCompiler& compiler) {
    Group missing;
    for (Wanted& w : wanted) {
      if (!w.mine) continue;
      w.image = files.load(w.key);
      if (!w.image) missing.push_back(&w);
    }
    const std::vector<Group> groups = groupsOf(missing, compiler);
    forEachOnThreads(groups.size(), [&](size_t i) { compileOrSplit(groups[i], compiler); });
  }
};

ImageCache::ImageCache(std::string folder, int64_t max_bytes, int64_t memory_bytes)
    : impl_(std::make_unique<Impl>(std::move(folder), max_bytes, memory_bytes)) {}

ImageCache::~ImageCache() = default;

int64_t ImageCache::compiled() const { return impl_->compiled.load(); }

std::vector<Image> ImageCache::get(const std::vector<const KernelSource*>& sources,
                                   const KernelCompiler& compiler, int64_t* compiled) {
  std::vector<Wanted> wanted;
  for (const KernelSource* source : sources) {
    HEDDLE_CHECK(source->target == compiler.target(),
                 "the kernel source and the compiler have different targets");
    wanted.push_back({source, ImageKey(*source, compiler), nullptr, nullptr});
  }
  // A thread publishes all images that it has claimed before it waits for others. Two threads
  // therefore never wait for each other.
  while (impl_->claim(wanted)) {
    try {
      impl_->make(wanted, compiler);
    } catch (...) {
      impl_->publish(wanted);
      throw;
    }
    impl_->publish(wanted);
    for (const Wanted& w : wanted) {
      if (w.error) std::rethrow_exception(w.error);
    }
  }
  std::vector<Image> images;
  for (Wanted& w : wanted) {
    images.push_back(std::move(w.image));
    if (compiled != nullptr && w.compiled) ++*compiled;
  }
  return images;
}

Image ImageCache::get(const KernelSource& source, const KernelCompiler& compiler) {
  return get(std::vector<const KernelSource*>{&source}, compiler).front();
}

std::string ImageCache::defaultFolder() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string own = variable("HEDDLE_CACHE_DIR"); !own.empty()) return own;
  if (std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/heddle";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/heddle";
  const std::filesystem::path temporary = std::filesystem::temp_directory_path();
  return (temporary / fmt::format("heddle-cache-{}", getuid())).string();
}

}  // namespace heddle::codegen
