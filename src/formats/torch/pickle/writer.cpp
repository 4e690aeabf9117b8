#include "formats/torch/pickle/writer.hpp"

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/tensor/tensor_slab.hpp"
#include "formats/torch/pickle/plan.hpp"
#include "formats/torch/zip/writer.hpp"

namespace hortator::formats {
namespace {

constexpr auto archive_folder = "archive/";
constexpr std::int64_t storage_piece_bytes = std::int64_t{1} << 23;

using StorageSource = std::function<at::Tensor(std::size_t storage)>;

void write_storage(ZipWriter& archive, const at::Tensor& storage, const WriteProgress& advance) {
  const auto max_elements = storage_piece_bytes / static_cast<std::int64_t>(storage.element_size());
  for_each_piece(storage, {0, storage.numel()}, max_elements, [&](const at::Tensor& piece) {
    const auto flat = ready_to_store(piece);
    archive.append(flat.const_data_ptr(), flat.nbytes());
    if (advance) advance(static_cast<std::int64_t>(flat.nbytes()));
  });
}

void write_archive(const RawFile& file, const PicklePlan& plan, const StorageSource& source,
                   const WriteProgress& advance) {
  ZipWriter archive(file);
  archive.add(text::concat(archive_folder, "data.pkl"), pickle_of(plan));
  archive.add(text::concat(archive_folder, "byteorder"), "little");
  for (std::size_t i = 0; i < plan.storages.size(); ++i) {
    archive.begin(text::concat(archive_folder, "data/", i));
    write_storage(archive, source(i), advance);
    archive.end();
  }
  archive.add(text::concat(archive_folder, "version"), "3\n");
  archive.finish();
}

void write_pickle_file(const std::filesystem::path& path, const PicklePlan& plan, const StorageSource& source,
                       const WriteProgress& advance) {
  const auto target = std::filesystem::absolute(path);
  const auto staged = target.string() + ".new-" + replacement_id();
  try {
    auto file = RawFile::create(staged);
    write_archive(file, plan, source, advance);
    file.sync();
    file.close();
    formats::rename(staged, target);
    sync_folder(target.parent_path());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(staged, ignored);
    throw;
  }
}

}  // namespace

void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors, const WriteProgress& advance) {
  const auto tied = plan_tied_pickle(tensors);
  write_pickle_file(
      path, tied.plan, [&](std::size_t storage) { return tied.storages[storage]; }, advance);
}

void write_pickle(const std::filesystem::path& path, const NamedSpecs& tensors,
                  const std::function<at::Tensor(const std::string& name)>& source, const WriteProgress& advance) {
  write_pickle_file(
      path, plan_pickle(tensors), [&](std::size_t storage) { return source(tensors[storage].first); }, advance);
}

}  // namespace hortator::formats
