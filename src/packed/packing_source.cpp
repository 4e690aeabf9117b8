#include "packed/packing_source.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/safetensors/writer.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "packed/packing.hpp"

namespace hortator::packed {
namespace {

namespace fs = std::filesystem;

/// A file that is removed when this ends; who has opened it keeps its bytes.
class UnnamedFile {
 public:
  explicit UnnamedFile(const fs::path& folder)
      : path_(folder / text::concat(".packed-weights.", formats::replacement_id())) {}
  ~UnnamedFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

PackingSource::PackingSource(std::shared_ptr<const weights::WeightSource> source,
                             std::map<std::string, PackableLayer> layers)
    : source_(std::move(source)), layers_(std::move(layers)) {}

at::Tensor PackingSource::packed(const std::string& name) const {
  const auto& layer = layers_.at(name);
  const machine::RecyclingAllocator blocks(0);  // float32 leaves no holes between packed weights
  return pack(values_of(layer, source_->tensor(name)), layer.layout);
}

void PackingSource::keep_on_disk(const std::vector<std::string>& names, const fs::path& folder) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& name : names)
    if (layers_.contains(name)) specs.emplace(name, spec(name));
  if (specs.empty()) return;
  formats::make_folder(folder);
  const UnnamedFile unnamed(folder);
  const auto plan = formats::plan_safetensors(specs);
  auto file = formats::RawFile::create(unnamed.path());
  file.write_at(0, plan.beginning.data(), plan.beginning.size());
  for (const auto& planned : plan.tensors) {
    const auto bytes = packed(planned.name);
    file.write_at(planned.offset, bytes.const_data_ptr(), bytes.nbytes());
  }
  file.close();
  kept_ = std::make_unique<const formats::SafetensorsSource>(unnamed.path());
}

formats::TensorSpec PackingSource::spec(const std::string& name) const {
  const auto layer = layers_.find(name);
  if (layer == layers_.end()) return source_->spec(name);
  return {.type = at::kByte, .shape = {layer->second.layout.bytes(), 1}};
}

void PackingSource::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto layer = layers_.find(name);
  if (layer == layers_.end()) return source_->read(name, elements, to);
  const auto begin = static_cast<std::uint64_t>(elements.begin);
  const auto bytes = static_cast<std::size_t>(elements.size());
  if (is_kept(name)) return kept_->file().read_at(kept_->offset(name) + begin, to, bytes);
  const std::lock_guard lock(mutex_);
  if (current_ != name) {
    current_bytes_ = at::Tensor();
    current_bytes_ = packed(name);
    current_ = name;
  }
  std::memcpy(to, current_bytes_.const_data_ptr<std::uint8_t>() + begin, bytes);
  if (elements.end < layer->second.layout.bytes()) return;
  current_.clear();
  current_bytes_ = at::Tensor();
}

std::optional<weights::FileSpan> PackingSource::span(const std::string& name) const {
  if (!layers_.contains(name)) return source_->span(name);
  if (!is_kept(name)) return {};
  return weights::FileSpan{.file = &kept_->file(), .offset = kept_->offset(name)};
}

std::string PackingSource::identity(const std::string& name) const {
  return layers_.contains(name) ? std::string() : source_->identity(name);
}

at::Tensor PackingSource::tensor(const std::string& name) const {
  return layers_.contains(name) ? WeightSource::tensor(name) : source_->tensor(name);
}

}  // namespace hortator::packed
