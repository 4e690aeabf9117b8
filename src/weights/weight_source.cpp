#include "weights/weight_source.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/safetensors/source.hpp"
#include "formats/torch/pickle/file.hpp"
#include "weights/distributed_weights.hpp"
#include "weights/gguf_weights.hpp"
#include "weights/offload_folder_weights.hpp"
#include "weights/weight_shards.hpp"
#include "weights/zero_weights.hpp"

namespace hortator::weights {

namespace {

/// A state dict that torch.save wrote.
class PickledWeights : public WeightSource {
 public:
  explicit PickledWeights(const std::filesystem::path& path) : file_(path) {}

  const std::filesystem::path& path() const override { return file_.path(); }
  const std::vector<std::string>& names() const override { return file_.names(); }
  formats::TensorSpec spec(const std::string& name) const override { return file_.spec(name); }

  std::string identity(const std::string& name) const override {
    const auto& tensor = file_.tensor(name);
    return text::concat(tensor.storage, " from ", tensor.first, ", ", formats::to_string(tensor.spec));
  }
  at::Tensor tensor(const std::string& name) const override { return file_.view(name); }

  // Reads whole rows, whose positions the file knows whatever the strides.
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    if (elements.size() <= 0) return;
    const auto spec = file_.spec(name);
    const bool is_whole = elements.size() == spec.elements();
    const auto row = is_whole ? 1 : spec.elements() / spec.shape.front();
    const auto first = elements.begin / row;
    const auto count = (elements.end + row - 1) / row - first;
    const auto rows = (is_whole ? file_.get(name) : file_.get_rows(name, first, count)).contiguous();
    const auto element = spec.element_bytes();
    const auto* from = static_cast<const std::byte*>(rows.const_data_ptr()) + (elements.begin - first * row) * element;
    std::memcpy(to, from, static_cast<std::size_t>(elements.size() * element));
  }

 private:
  formats::PickleFile file_;
};

namespace fs = std::filesystem;

class SafetensorsWeights : public WeightSource {
 public:
  explicit SafetensorsWeights(const fs::path& path) : source_(path) {
    source_.file().expect_front_to_back();
    const auto& metadata = source_.header().metadata;
    const auto format = metadata.find("format");
    if (format == metadata.end() || format->second == "pt") return;
    throw formats::FileError(
        {.what = text::concat(path, " holds weights of ", text::quote(format->second), ", not of PyTorch"),
         .why = "other frameworks store the same layers in other layouts",
         .hint = "convert it with that framework, or use the PyTorch version of the model"});
  }

  const fs::path& path() const override { return source_.file().path(); }
  const std::vector<std::string>& names() const override { return source_.names(); }
  formats::TensorSpec spec(const std::string& name) const override { return source_.spec(name); }

  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    const auto element = source_.spec(name).element_bytes();
    const auto offset = source_.offset(name) + static_cast<std::uint64_t>(elements.begin * element);
    const auto bytes = static_cast<std::size_t>(elements.size() * element);
    source_.file().read_at(offset, to, bytes);
  }
  std::optional<FileSpan> span(const std::string& name) const override {
    return FileSpan{.file = &source_.file(), .offset = source_.offset(name)};
  }
  at::Tensor tensor(const std::string& name) const override { return source_.view(name); }
  void require_unchanged() const override { source_.file().require_unchanged(); }

 private:
  formats::SafetensorsSource source_;
};

std::unique_ptr<WeightSource> open_file(const fs::path& path) {
  static const std::set<std::string> pickles = {".pt", ".pth", ".bin"};
  const auto extension = path.extension().string();
  if (extension == ".safetensors") return std::make_unique<SafetensorsWeights>(path);
  if (extension == ".gguf") return std::make_unique<GgufWeights>(path);
  if (pickles.contains(extension)) return std::make_unique<PickledWeights>(path);
  throw UsageError({.what = text::concat("The file ", path, " is not in a known format for weights"),
                    .hint = "known are .safetensors, .gguf, .pt, .pth, .bin, .index.json, and folders"});
}

/// The files of an index as one source.
class IndexedWeights : public WeightSource {
 public:
  explicit IndexedWeights(const fs::path& index) : path_(index) {
    const auto map = read_weight_index(index);
    std::set<std::string> files;
    for (const auto& [name, file] : map) files.insert(file);
    for (const auto& file : files) add_file(file, map);
    for (const auto& [name, file] : map) {
      if (source_of_.contains(name)) continue;
      throw formats::FileError(
          {.what = text::concat("The file ", index.parent_path() / file, " has no tensor ", text::quote(name),
                                ", which the index ", index, " names"),
           .hint = "the files are from different saves, or one is truncated: copy all of them again"});
    }
  }

  const fs::path& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return source_of(name).spec(name); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    source_of(name).read(name, elements, to);
  }
  std::optional<FileSpan> span(const std::string& name) const override { return source_of(name).span(name); }
  std::string identity(const std::string& name) const override {
    const auto& source = source_of(name);
    const auto inside = source.identity(name);
    return inside.empty() ? inside : text::concat(source.path(), " ", inside);
  }
  at::Tensor tensor(const std::string& name) const override { return source_of(name).tensor(name); }
  void require_unchanged() const override {
    for (const auto& file : files_) file->require_unchanged();
  }

 private:
  /// If several files have a tensor, the index decides.
  void add_file(const std::string& file, const WeightMap& map) {
    const auto& source = files_.emplace_back(open_file(path_.parent_path() / file));
    for (const auto& name : source->names()) {
      const auto indexed = map.find(name);
      if (indexed != map.end() && indexed->second != file) continue;
      if (!source_of_.emplace(name, source.get()).second) continue;
      names_.push_back(name);
    }
  }

  const WeightSource& source_of(const std::string& name) const {
    const auto found = source_of_.find(name);
    if (found != source_of_.end()) return *found->second;
    throw UsageError(
        {.what = text::concat(path_, " has no tensor ", text::quote(name)), .hint = text::suggestion(name, names_)});
  }

  fs::path path_;
  std::vector<std::unique_ptr<WeightSource>> files_;
  std::vector<std::string> names_;
  std::map<std::string, const WeightSource*> source_of_;
};

/// The folder within one of save_state() into which Accelerate puts a model that FSDP has sharded.
constexpr auto accelerates_sharded_model = "pytorch_model_fsdp_0";

bool is_index(const fs::path& path) { return path.filename().string().ends_with(".index.json"); }

/// Returns the file to open for a folder, empty if there is none. A single file is preferred to an index, and
/// safetensors to torch.save files, since folders often have both; GGUF is what remains.
fs::path find_in(const fs::path& folder) {
  for (const auto* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  if (fs::exists(folder / DistributedWeights::metadata_file)) return folder / DistributedWeights::metadata_file;
  if (const auto sharded = folder / accelerates_sharded_model / DistributedWeights::metadata_file; fs::exists(sharded))
    return sharded;
  if (const auto zero = find_zero_folder(folder)) return *zero;
  if (fs::exists(folder / OffloadFolderWeights::index_file)) return folder / OffloadFolderWeights::index_file;
  std::vector<fs::path> found, quantised;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_hidden = entry.path().filename().string().starts_with('.');  // of a killed save
    if (is_hidden) continue;
    if (is_index(entry.path()) || entry.path().extension() == ".safetensors") found.push_back(entry.path());
    if (entry.path().extension() == ".gguf") quantised.push_back(entry.path());
  }
  if (found.empty()) found = quantised;
  if (std::ranges::any_of(found, is_index)) std::erase_if(found, std::not_fn(is_index));
  if (found.size() < 2) return found.empty() ? fs::path() : found.front();
  std::ranges::sort(found);
  throw UsageError({.what = text::concat("The folder ", folder, " holds several models: ", text::join(found)),
                    .hint = "name one of these files"});
}

}  // namespace

at::Tensor WeightSource::tensor(const std::string& name) const {
  const auto stored_spec = spec(name);
  auto whole = at::empty(stored_spec.shape, stored_spec.type);
  if (whole.numel() > 0) read(name, {0, whole.numel()}, static_cast<std::byte*>(whole.mutable_data_ptr()));
  return whole;
}

std::unique_ptr<WeightSource> open_weights(const fs::path& path) {
  if (!fs::exists(path)) {
    throw formats::FileError({.what = text::concat("There are no weights ", path, ": no such file or folder")});
  }
  if (!fs::is_directory(path)) {
    if (path.filename() == DistributedWeights::metadata_file)
      return std::make_unique<DistributedWeights>(path.parent_path());
    if (path.filename() == OffloadFolderWeights::index_file)
      return std::make_unique<OffloadFolderWeights>(path.parent_path());
    if (path.extension() == ".json") return std::make_unique<IndexedWeights>(path);
    return open_file(path);
  }
  const auto found = find_in(path);
  if (!found.empty() && fs::is_directory(found)) return std::make_unique<ZeroWeights>(found);
  if (!found.empty()) return open_weights(found);
  throw formats::FileError({.what = text::concat("The folder ", path, " holds no weights"),
                            .hint =
                                "known are model.safetensors, pytorch_model.bin, their .index.json, one .gguf file, "
                                "folders of torch.distributed.checkpoint (.metadata) and of DeepSpeed's ZeRO "
                                "(*_model_states.pt), offload folders of Accelerate (index.json), and the folders of "
                                "save_state"});
}

bool holds_weights(const fs::path& folder) { return fs::is_directory(folder) && !find_in(folder).empty(); }

}  // namespace hortator::weights
