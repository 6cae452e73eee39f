#include "codegen/compile/image_files.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "codegen/compile/runtime_text.h"
#include "codegen/text_hash.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> readWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return text;
}

std::string checksumLine(const std::string& image) {
  return fmt::format("{} {:016x}\n", image.size(), hash64(image, 1));
}

// Returns a name next to `path` that only this process uses.
fs::path temporaryFor(const fs::path& path) {
  static std::atomic<int> counter{0};
  fs::path temporary = path;
  temporary += fmt::format(".{}.{}.tmp", getpid(), counter.fetch_add(1));
  return temporary;
}

// Renames `temporary` to `path`. Readers of `path` see the old file or the new file, never a
// partial file. If the rename fails, removes `temporary` and returns false.
bool renameOrRemove(const fs::path& temporary, const fs::path& path) {
  std::error_code error;
  fs::rename(temporary, path, error);
  if (!error) return true;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return false;
}

bool writeAtomically(const fs::path& path, const std::string& bytes) {
  const fs::path temporary = temporaryFor(path);
  std::error_code ignored;
  {
    std::ofstream file(temporary, std::ios::binary);
    file << bytes;
    file.close();
    if (file.fail()) {
      fs::remove(temporary, ignored);
      return false;
    }
  }
  fs::permissions(temporary, fs::perms::owner_all, ignored);
  return renameOrRemove(temporary, path);
}

// Makes `path` a hard link to the file `from`. Returns false if this fails, for example because the
// file system has no hard links. The caller then writes a copy.
bool linkAtomically(const fs::path& from, const fs::path& path) {
  const fs::path temporary = temporaryFor(path);
  std::error_code error;
  fs::create_hard_link(from, temporary, error);
  if (error) return false;
  const bool renamed = renameOrRemove(temporary, path);
  // If `temporary` and `path` already refer to the same file, rename() does nothing and does not
  // remove `temporary`.
  fs::remove(temporary, error);
  return renamed;
}

struct Entry {
  fs::file_time_type age;
  std::string stem;
  int64_t bytes = 0;
};

// Returns the entries of the folder by stem. If several entries link to one file, each entry counts
// an equal share of the file's size. Also removes old temporary files.
std::map<std::string, Entry> entriesOf(const fs::path& folder) {
  std::map<std::string, Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const std::string extension = file.path().extension().string();
    // A killed process may have left this partial file.
    if (extension == ".tmp" &&
        file.last_write_time(error) < fs::file_time_type::clock::now() - std::chrono::hours(1)) {
      fs::remove(file.path(), error);
    }
    if (extension != ".key" && extension != ".so" && extension != ".cubin") continue;
    Entry& entry = entries[file.path().stem().string()];
    entry.stem = file.path().stem().string();
    const uintmax_t size = file.file_size(error);
    const uintmax_t links = error ? 1 : file.hard_link_count(error);
    if (!error) entry.bytes += static_cast<int64_t>(size / std::max<uintmax_t>(1, links));
    const fs::file_time_type time = file.last_write_time(error);
    if (!error) entry.age = std::max(entry.age, time);
  }
  return entries;
}

}  // namespace

ImageKey::ImageKey(const KernelSource& source, const KernelCompiler& compiler)
    : target(source.target) {
  text = fmt::format("heddle image 1\n{}\n{}\n{}\n{}", target == Target::Cuda ? "cuda" : "cpp",
                     compiler.identity(), runtimeHeader(target), source.text);
  stem = fmt::format("{:016x}{:016x}", hash64(text), hash64(text, 0x9e3779b97f4a7c15ull));
}

ImageFiles::ImageFiles(std::string folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

fs::path ImageFiles::pathOf(const ImageKey& key) const {
  return folder_ / (key.stem + (key.target == Target::Cpp ? ".so" : ".cubin"));
}

std::shared_ptr<const KernelImage> ImageFiles::load(const ImageKey& key) const {
  const fs::path note_path = folder_ / (key.stem + ".key");
  const std::optional<std::string> note = readWhole(note_path);
  const fs::path path = pathOf(key);
  const std::optional<std::string> bytes = readWhole(path);
  if (!note || !bytes || *note != checksumLine(*bytes) + key.text) return nullptr;
  // Sets the modification time of the key file to the time of this use. evict() sorts entries by
  // this time.
  std::error_code ignored;
  fs::last_write_time(note_path, fs::file_time_type::clock::now(), ignored);
  auto image = std::make_shared<KernelImage>();
  const auto* begin = reinterpret_cast<const std::byte*>(bytes->data());
  if (key.target == Target::Cpp) {
    image->path = path.string();
  } else {
    image->bytes.assign(begin, begin + bytes->size());
  }
  return image;
}

std::vector<std::shared_ptr<const KernelImage>> ImageFiles::save(
    const std::vector<const ImageKey*>& keys, std::vector<std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool written = write(keys, text);
  const bool in_file = keys.front()->target == Target::Cpp;
  const std::string kept = in_file && !written ? keep(*keys.front(), text) : "";
  std::vector<std::shared_ptr<const KernelImage>> images;
  for (const ImageKey* key : keys) {
    auto image = std::make_shared<KernelImage>();
    if (in_file) image->path = written ? pathOf(*key).string() : kept;
    if (!in_file) image->bytes = bytes;
    images.push_back(std::move(image));
  }
  return images;
}

bool ImageFiles::write(const std::vector<const ImageKey*>& keys, const std::string& image) {
  std::error_code error;
  if (!fs::is_directory(folder_, error)) {
    fs::create_directories(folder_, error);
    if (!error) fs::permissions(folder_, fs::perms::owner_all, error);
  }
  if (error) {
    complain(error.message());
    return false;
  }
  std::set<std::string> stems;
  const fs::path first = pathOf(*keys.front());
  for (const ImageKey* key : keys) {
    const bool linked = key != keys.front() && linkAtomically(first, pathOf(*key));
    // The image is written before its key. No process reads an image without a key. A crash between
    // the two writes therefore only costs a compilation.
    if ((!linked && !writeAtomically(pathOf(*key), image)) ||
        !writeAtomically(folder_ / (key->stem + ".key"), checksumLine(image) + key->text)) {
      complain(std::strerror(errno));
      return false;
    }
    stems.insert(key->stem);
  }
  evict(stems);
  return true;
}

// Writes the shared object to a temporary folder, because dlopen needs a file and the cache folder
// is not writable. The destructor of this ImageFiles removes the temporary folder.
std::string ImageFiles::keep(const ImageKey& key, const std::string& image) {
  std::lock_guard lock(mutex_);
  if (!own_folder_) own_folder_.emplace();
  const std::string path = own_folder_->path() + "/" + key.stem + ".so";
  HEDDLE_USER_CHECK(writeAtomically(path, image), "cannot write a kernel to {}", path);
  return path;
}

void ImageFiles::complain(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (complained_) return;
  complained_ = true;
  fmt::print(stderr,
             "heddle: cannot write to the kernel cache {} ({}); kernels are compiled "
             "again in each process\n",
             folder_.string(), what);
}

// Removes the least recently used entries until the folder is not larger than max_bytes_. Never
// removes the entries in `keep`. An image that is open or mapped stays usable after its file is
// removed.
void ImageFiles::evict(const std::set<std::string>& keep) const {
  int64_t total = 0;
  std::vector<Entry> by_age;
  for (const auto& [stem, entry] : entriesOf(folder_)) {
    total += entry.bytes;
    if (!keep.contains(stem)) by_age.push_back(entry);
  }
  std::sort(by_age.begin(), by_age.end(),
            [](const Entry& a, const Entry& b) { return a.age < b.age; });
  std::error_code error;
  for (const Entry& entry : by_age) {
    if (total <= max_bytes_) break;
    for (const char* extension : {".key", ".so", ".cubin"}) {
      fs::remove(folder_ / (entry.stem + extension), error);
    }
    total -= entry.bytes;
  }
}

}  // namespace heddle::codegen
