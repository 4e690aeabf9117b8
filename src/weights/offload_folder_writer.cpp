#include "weights/offload_folder_writer.hpp"

#include <ATen/ops/empty.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "weights/filling.hpp"
#include "weights/offload_folder_weights.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;

/// Under a name of its own until it is complete: processes may write the same folder.
void write_file(const fs::path& path, const void* data, std::size_t bytes) {
  const fs::path aside = text::concat(path.string(), ".", formats::replacement_id());
  try {
    auto file = formats::RawFile::create(aside);
    file.write_at(0, data, bytes);
    file.close();
    formats::rename(aside, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw;
  }
}

}  // namespace

void write_offload_folder(const fs::path& folder, const WeightSource& source,
                          const std::vector<TensorToOffload>& tensors) {
  formats::make_folder(folder);
  auto index = nlohmann::json::object();
  for (const auto& [name, stored, spec] : tensors) {
    const auto values = at::empty(spec.shape, at::TensorOptions(spec.type));
    fill(source, {{.stored = stored, .tensor = values}});
    write_file(folder / (name + ".dat"), values.const_data_ptr(), values.nbytes());
    index[name] = {{"dtype", formats::type_name(spec.type)}, {"shape", spec.shape}};
  }
  const auto text = index.dump(2);
  write_file(folder / OffloadFolderWeights::index_file, text.data(), text.size());
}

}  // namespace hortator::weights
